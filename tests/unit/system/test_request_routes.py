"""The last requests, as they are told and logged."""

import json

import pytest
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from structlog.testing import capture_logs

from eloquio.answers.exchange import Exchange, RequestLog
from eloquio.app import _render, _render_validation
from eloquio.engines.timeline import Timeline
from eloquio.errors import EloquioError, EngineCrashed
from eloquio.system.answer_log import log_answer
from eloquio.system.request_routes import router
from fixtures.asgi import ask

USAGE = {"prompt_tokens": 30, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 2}}


@pytest.fixture
def log():
    return RequestLog(log_answer)


@pytest.fixture
def get(log):
    handlers = {EloquioError: _render, RequestValidationError: _render_validation}
    app = FastAPI(exception_handlers=handlers)
    app.include_router(router)
    app.state.request_log = log

    async def with_id(scope, receive, send):
        scope["state"] = {"request_id": "its own"}
        await app(scope, receive, send)

    def get(path, query=""):
        reply = ask(with_id, path, query=query)
        return reply.status, json.loads(reply.body)

    return get


def exchange(number=1, **fields):
    return Exchange(**{"id": f"id-{number}", "route": "/chat/completions"} | fields)


def test_the_newest_comes_first(log, get):
    for number in range(1, 6):
        log.begin(exchange(number))
    _, body = get("/requests", "limit=3")
    assert body["object"] == "list"
    assert [one["id"] for one in body["data"]] == ["id-5", "id-4", "id-3"]


@pytest.mark.parametrize("limit", ["0", "201", "many"])
def test_a_limit_that_is_none_is_refused(get, limit):
    status, body = get("/requests", f"limit={limit}")
    assert (status, body["error"]["code"]) == (400, "invalid_request")
    assert body["error"]["param"] == "limit"


def test_one_that_ended_is_told_whole(log, get):
    timeline = Timeline(started=1000.5, asked_ms=5.0, first_token_ms=20.0, ended_ms=120.0)
    log.begin(
        exchange(
            is_stream=True,
            model="tiny",
            outcome="completed",
            http_status=200,
            finish_reason="stop",
            usage=USAGE,
            timeline=timeline,
        )
    )
    status, body = get("/requests/id-1")
    assert status == 200
    assert body == {
        "id": "id-1",
        "route": "/chat/completions",
        "model": "tiny",
        "started": 1000.5,
        "is_stream": True,
        "status": "completed",
        "http_status": 200,
        "error_code": None,
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 30, "completion_tokens": 7, "cached_tokens": 2},
        "timeline": {
            "queue_ms": 5.0,
            "media_ms": None,
            "prefill_ms": 15.0,
            "first_token_ms": 20.0,
            "decode_ms": 100.0,
            "total_ms": 120.0,
        },
        "steps_ms": [],
    }
    assert get("/requests")[1]["data"] == [{k: v for k, v in body.items() if k != "steps_ms"}]


def test_one_under_way_has_no_end_yet(log, get):
    log.begin(exchange(is_stream=True))
    body = get("/requests/id-1")[1]
    assert (body["status"], body["http_status"], body["usage"]) == ("running", None, None)
    assert set(body["timeline"].values()) == {None}


def test_the_steps_are_told_where_they_were_asked_for(log, get):
    stepwise = exchange(trace_level="step")
    log.begin(stepwise)
    stepwise.timeline.comes()
    stepwise.timeline.comes()
    first, second = get("/requests/id-1")[1]["steps_ms"]
    assert 0 <= first <= second


CRASH = EngineCrashed("It crashed.")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"outcome": "failed", "error": CRASH, "http_status": 502}, (502, CRASH.code)),
        ({"outcome": "failed", "error": CRASH, "http_status": 200}, (200, CRASH.code)),
        ({"outcome": "client_left"}, (None, None)),
    ],
)
def test_an_end_is_told_with_its_status_and_its_code(log, get, fields, told):
    log.begin(exchange(**fields))
    body = get("/requests/id-1")[1]
    assert (body["http_status"], body["error_code"]) == told


def test_of_two_with_one_id_the_newer_is_told(log, get):
    log.begin(exchange(model="older"))
    log.begin(exchange(model="newer"))
    assert get("/requests/id-1")[1]["model"] == "newer"


def test_one_that_nobody_knows_is_a_404(get):
    status, body = get("/requests/none")
    assert (status, body["error"]["code"]) == (404, "request_not_found")


def test_the_oldest_make_room(log, get):
    for number in range(201):
        log.begin(ended := exchange(number))
        log.end(ended)
    assert get("/requests/id-0")[0] == 404
    assert get("/requests/id-1")[0] == 200
    assert len(get("/requests", "limit=200")[1]["data"]) == 200


def test_each_that_ended_is_one_line_in_the_log(log):
    timeline = Timeline(asked_ms=5.0, first_token_ms=20.0, ended_ms=120.0)
    ended = exchange(model="tiny", usage=USAGE, timeline=timeline)
    ended.ends("failed", CRASH)
    with capture_logs() as lines:
        log.end(ended)
    [line] = lines
    assert line == {
        "event": "answered",
        "log_level": "info",
        "id": "id-1",
        "route": "/chat/completions",
        "model": "tiny",
        "outcome": "failed",
        "code": CRASH.code,
        "finish_reason": None,
        "prompt_tokens": 30,
        "completion_tokens": 7,
        "cached_tokens": 2,
        "queue_ms": 5.0,
        "first_token_ms": 20.0,
        "decode_ms": 100.0,
    }


def test_one_under_way_is_never_forgotten(log, get):
    log.begin(exchange(id="long"))
    for number in range(300):
        ended = exchange(id=f"short-{number}")
        log.begin(ended)
        log.end(ended)
    assert get("/requests/long")[0] == 200
