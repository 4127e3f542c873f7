"""Pictures belong to the answer that they are made ready for."""

import asyncio
import base64
import io
import json
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI
from PIL import Image

from eloquio.answers.cancels import Cancels
from eloquio.answers.exchange import RequestLog
from eloquio.app import _render
from eloquio.chat import request, routes
from eloquio.errors import EloquioError, EngineCrashed
from eloquio.media.pictures import PictureMaker
from fixtures.asgi import ask


class CrashedPool:
    """Has an engine for nobody."""

    @asynccontextmanager
    async def lease(self, *_):
        raise EngineCrashed("It crashed.")
        yield


@pytest.fixture
def app():
    app = FastAPI(exception_handlers={EloquioError: _render})
    app.include_router(routes.router)
    app.state.cancels = Cancels()
    app.state.request_log = RequestLog()
    app.state.pool = CrashedPool()
    app.state.pictures = PictureMaker()
    return app


def chat(app, *parts, **fields):
    """The reply's status, its error's code, and what was noted of the request."""
    content = [*parts, {"type": "text", "text": "What is it?"}]
    body = {"messages": [{"role": "user", "content": content}], "cancel_id": "stop"} | fields

    async def with_id(scope, receive, send):
        scope["state"] = {"request_id": "1"}
        await app(scope, receive, send)

    reply = ask(
        with_id,
        "/chat/completions",
        method="POST",
        headers={"content-type": "application/json"},
        body=json.dumps(body).encode(),
    )
    [exchange] = app.state.request_log.newest()
    return reply.status, json.loads(reply.body)["error"]["code"], exchange


def picture():
    file = io.BytesIO()
    Image.new("RGB", (2, 2), "red").save(file, "WEBP")
    url = "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": url}}


@pytest.mark.parametrize("stream", [True, False])
def test_a_cancel_ends_the_answer_while_its_pictures_are_made_ready(app, monkeypatch, stream):
    seen, cancels = [], []

    async def slow(*_):
        [exchange] = app.state.request_log.newest()
        seen.append(exchange.outcome)
        cancels.append(asyncio.create_task(app.state.cancels.cancel("stop")))
        async with asyncio.timeout(30):
            await asyncio.Event().wait()

    monkeypatch.setattr(request, "with_pictures", slow)
    status, code, exchange = chat(app, picture(), stream=stream)
    assert seen == ["running"]
    assert (status, code) == (499, "request_cancelled")
    assert (exchange.outcome, exchange.timeline.media_ms) == ("cancelled", None)


@pytest.mark.parametrize("stream", [True, False])
def test_the_time_that_pictures_took_is_noted(app, stream):
    status, code, exchange = chat(app, picture(), stream=stream)
    assert (status, code) == (502, "engine_crashed")
    assert exchange.timeline.media_ms > 0


def test_without_pictures_none_is_noted(app):
    _, code, exchange = chat(app)
    assert code == "engine_crashed"
    assert exchange.timeline.media_ms is None


@pytest.mark.parametrize("stream", [True, False])
def test_a_picture_that_is_none_has_its_own_status_and_is_noted(app, stream):
    broken = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    status, code, exchange = chat(app, broken, stream=stream)
    assert (status, code) == (415, "image_format_unsupported")
    assert (exchange.outcome, exchange.http_status) == ("failed", 415)
