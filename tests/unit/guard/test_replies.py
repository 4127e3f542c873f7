"""What every reply carries, whoever made it."""

import json
import re

import pytest
import structlog

from eloquio.guard import Guard, HostPolicy
from fixtures.asgi import ask

EVERY_REPLY = ["/", "/v1/status", "/stream", "/broken"]


@pytest.mark.parametrize("path", EVERY_REPLY)
@pytest.mark.parametrize("host", ["localhost", "evil.example"])
def test_every_reply_carries_the_security_headers(guarded, path, host):
    reply = ask(guarded, path, host=host)
    policy = reply.header("content-security-policy")
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-eval" not in policy
    assert reply.header("x-content-type-options") == "nosniff"
    assert reply.header("referrer-policy") == "no-referrer"
    assert reply.header("cross-origin-opener-policy") == "same-origin"
    assert reply.header("cross-origin-resource-policy") == "same-origin"
    assert "microphone=(self)" in reply.header("permissions-policy")
    assert "geolocation=()" in reply.header("permissions-policy")


@pytest.mark.parametrize("path", EVERY_REPLY)
def test_every_reply_says_how_long_it_took_to_begin(guarded, path):
    assert re.fullmatch(r"app;dur=\d+\.\d", ask(guarded, path).header("server-timing"))


def test_a_reply_that_times_itself_keeps_its_own_words(guarded):
    assert ask(guarded, "/from-an-engine").header("server-timing") == "decode;dur=3"


@pytest.mark.parametrize("path", ["/", "/v1/status", "/stream"])
def test_a_browser_asks_anew_before_it_shows_what_it_kept(guarded, path):
    assert ask(guarded, path).header("cache-control") == "no-cache"


@pytest.mark.parametrize("given", ["a", "job-7.step_2", "x" * 128])
def test_a_request_may_bring_its_id(guarded, given):
    reply = ask(guarded, headers={"x-request-id": given})
    assert reply.header("x-request-id") == given
    assert reply.body.decode() == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a\r\nset-cookie: b", "naïve", "a/b"])
def test_an_id_that_could_do_harm_is_replaced(guarded, given):
    own = ask(guarded, headers={"x-request-id": given}).header("x-request-id")
    assert own != given
    assert re.fullmatch(r"[0-9a-f]{32}", own)


def test_each_request_gets_an_id_of_its_own(guarded):
    ids = {ask(guarded, path).header("x-request-id") for path in EVERY_REPLY for _ in range(3)}
    assert len(ids) == 3 * len(EVERY_REPLY)


def test_the_id_stands_in_the_log_lines_of_the_request_only():
    seen: list[dict] = []

    async def app(scope, receive, send):
        seen.append(structlog.contextvars.get_contextvars())
        await send({"type": "http.response.start", "status": 204, "headers": []})

    ask(Guard(app, hosts=HostPolicy()), headers={"x-request-id": "mine"})
    assert seen == [{"request_id": "mine"}]
    assert structlog.contextvars.get_contextvars() == {}


def test_what_nobody_answered_is_answered_without_its_cause(guarded, log_lines):
    reply = ask(guarded, "/broken")
    assert log_lines[0]["exc_info"]
    assert reply.status == 500
    assert json.loads(reply.body)["error"]["code"] == "unexpected_error"
    assert b"secret cause" not in reply.body


def test_a_stream_that_breaks_is_cut_and_not_ended_cleanly(guarded):
    with pytest.raises(RuntimeError, match="the secret cause"):
        ask(guarded, "/broken-late")


def test_a_request_leaves_one_line_in_the_log_without_its_query(guarded, log_lines):
    ask(guarded, "/v1/\x1b[2Jmodels", method="POST", query="search=mine")
    [line] = log_lines
    assert "mine" not in str(line)
    assert (line["method"], line["status"]) == ("POST", 200)
    assert line["path"] == "/v1/%1B%5B2Jmodels"


@pytest.mark.parametrize("path", ["/health", "/status", "/v1/status", "/api/inference/status"])
def test_a_poll_leaves_a_line_only_if_it_fails(guarded, log_lines, path):
    ask(guarded, path)
    assert log_lines == []
    ask(guarded, path, host="evil.example")
    assert [line["status"] for line in log_lines] == [403]


def test_the_chunks_of_a_stream_pass_as_they_are():
    chunks = [{"type": "http.response.body", "body": b"x", "more_body": True} for _ in range(3)]

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for chunk in chunks:
            await send(chunk)

    reply = ask(Guard(app, hosts=HostPolicy()))
    assert all(got is sent for got, sent in zip(reply.messages[1:], chunks, strict=True))
