"""What a client gets of an answer that goes well, fails early, fails late, or takes its time."""

import asyncio
import json

import pytest
from fastapi import FastAPI, Request
from structlog.testing import capture_logs

from eloquio import sse
from eloquio.answers.answer import StreamedAnswer, WholeAnswer
from eloquio.answers.cancels import Cancels
from eloquio.answers.exchange import Exchange, RequestLog
from eloquio.app import _render
from eloquio.errors import EloquioError, EngineCrashed
from fixtures.asgi import ask

CRASH = EngineCrashed("It crashed.")


def app_of(answer_to):
    """An application whose only route answers what `answer_to(request, exchange)` makes."""
    app = FastAPI(exception_handlers={EloquioError: _render})
    app.state.cancels = Cancels()
    app.state.request_log = RequestLog()

    @app.get("/")
    async def route(request: Request):
        return answer_to(request, Exchange(id="1", route="/chat/completions", cancel_id="stop"))

    return app


def streamed(*blocks):
    """An answer of these blocks; an error among them is raised, an event waited for."""

    async def events():
        for block in blocks:
            if isinstance(block, Exception):
                raise block
            if isinstance(block, asyncio.Event):
                await _happens(block)
            else:
                yield block

    return app_of(lambda request, exchange: StreamedAnswer(request, exchange, events()))


async def _happens(event):
    """From now on: what happened before doesn't count."""
    event.clear()
    async with asyncio.timeout(30):
        await event.wait()


def get(app, heard=None):
    """The reply; `heard` is set at each heartbeat in it."""

    async def with_id(scope, receive, send):
        async def listening_send(message):
            await send(message)
            if heard is not None and message.get("body") == b":\n\n":
                heard.set()

        scope["state"] = {"request_id": "1"}
        await app(scope, receive, listening_send)

    return ask(with_id)


def outcome(app):
    [exchange] = app.state.request_log.newest()
    return exchange.outcome, exchange.http_status, exchange.error and exchange.error.code


def test_blocks_are_sent_as_they_are_and_the_end_after_them():
    app = streamed(b"data: 1\n\n", b"data: 2\n\n")
    reply = get(app)
    assert reply.status == 200
    assert reply.body == b"data: 1\n\ndata: 2\n\ndata: [DONE]\n\n"
    assert outcome(app) == ("completed", 200, None)


def test_what_fails_before_the_first_byte_has_its_own_status():
    app = streamed(CRASH)
    reply = get(app)
    assert (reply.status, reply.header("content-type")) == (502, "application/json")
    assert outcome(app) == ("failed", 502, "engine_crashed")


def test_what_fails_later_is_one_event_and_no_end():
    app = streamed(b"data: 1\n\n", CRASH)
    first, event, rest = get(app).body.split(b"\n\n")
    assert (first, rest) == (b"data: 1", b"")
    assert json.loads(event.removeprefix(b"data: "))["error"]["code"] == "engine_crashed"
    assert outcome(app) == ("failed", 200, "engine_crashed")


def test_a_fault_of_ours_is_told_as_one():
    app = streamed(b"data: 1\n\n", ValueError("a bug"))
    with capture_logs() as logs:
        event = get(app).body.split(b"\n\n")[1]
    assert json.loads(event.removeprefix(b"data: "))["error"]["code"] == "unexpected_error"
    assert b"a bug" not in event
    assert [str(line["exc_info"]) for line in logs if line["log_level"] == "error"] == ["a bug"]


def test_a_client_that_waits_long_hears_that_it_goes_on(monkeypatch):
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.0)
    heartbeat = asyncio.Event()
    reply = get(streamed(heartbeat, b"data: 1\n\n", heartbeat, CRASH), heartbeat)
    assert reply.status == 200
    before, _, after = reply.body.partition(b"data: 1\n\n")
    assert before.startswith(b":\n\n")
    assert after.startswith(b":\n\n")
    assert b"engine_crashed" in after


@pytest.mark.parametrize("error", [None, CRASH])
def test_one_body_is_whole_or_the_error(error):
    async def body():
        if error:
            raise error
        return b"{}"

    app = app_of(lambda request, exchange: WholeAnswer(request, exchange, body))
    reply = get(app)
    if error:
        assert (reply.status, json.loads(reply.body)["error"]["code"]) == (502, "engine_crashed")
    else:
        assert (reply.status, reply.body) == (200, b"{}")
        assert reply.header("content-length") == "2"


def test_a_cancel_before_the_first_byte_is_a_499():
    app = streamed(asyncio.Event())
    asyncio.run(app.state.cancels.cancel("stop"))
    reply = get(app)
    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (499, "request_cancelled")
    assert outcome(app) == ("cancelled", 499, "request_cancelled")
