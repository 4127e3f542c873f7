"""What a real server tells of its requests and engines while it works with the real engine."""

import json
import os
import re
import signal
from contextlib import contextmanager

import httpx2 as httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from fixtures import runs
from fixtures.running import place, serving, until

SECRET = "the colour of my front door is vermilion"
QUESTION = [{"role": "user", "content": SECRET}]
ENDLESS = {"stream": True, "max_tokens": 8000}


@pytest.fixture
def server(home, tiny_model):
    place(tiny_model, home / "shelf" / "tiny.gguf")
    flags = ("--model-dir", str(home / "shelf"), "--no-load-on-start")
    with serving(home, *flags) as running:
        load(running)
        yield running


def load(server):
    reply = httpx.post(f"{server.url}/load", json={"model_path": "tiny"}, timeout=60)
    assert reply.status_code == 200


def ask(server, request_id, *, trace="", **fields):
    body = {"model": "tiny", "messages": QUESTION, "max_tokens": 5} | fields
    headers = {"x-request-id": request_id} | ({"x-trace-level": trace} if trace else {})
    return httpx.post(f"{server.url}/v1/chat/completions", json=body, headers=headers, timeout=60)


@contextmanager
def asking(server, request_id, **fields):
    """A stream under way, of which something has come."""
    body = {"model": "tiny", "messages": QUESTION} | ENDLESS | fields
    url, headers = f"{server.url}/v1/chat/completions", {"x-request-id": request_id}
    with httpx.stream("POST", url, json=body, headers=headers, timeout=60) as reply:
        chunks = reply.iter_raw()
        next(chunks)
        yield chunks


def request(server, request_id):
    return httpx.get(f"{server.url}/v1/requests/{request_id}").json()


def ended(server, request_id):
    def found():
        told = request(server, request_id)
        return told if told["status"] != "running" else None

    return until(found, 30)


def metrics(server, path="/metrics"):
    """Every value by its name and the values of its labels, in the order of their names."""
    text = httpx.get(f"{server.url}{path}").text
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def events(reply):
    """Of an event stream, as they come."""
    for line in reply.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


@contextmanager
def reading_logs(server, **query):
    with httpx.stream("GET", f"{server.url}/v1/logs", params=query, timeout=60) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        yield events(reply)


def test_a_streamed_answer_is_told_with_its_parts(server):
    assert ask(server, "streamed", stream=True).status_code == 200
    told = ended(server, "streamed")
    assert (told["route"], told["model"]) == ("/chat/completions", "tiny")
    assert (told["status"], told["http_status"], told["error_code"]) == ("completed", 200, None)
    assert (told["is_stream"], told["finish_reason"]) == (True, "length")
    assert told["usage"]["completion_tokens"] == 5
    assert told["usage"]["prompt_tokens"] > 5
    parts = told["timeline"]
    assert 0 < parts["queue_ms"] <= parts["first_token_ms"] <= parts["total_ms"]
    assert parts["prefill_ms"] > 0
    assert parts["first_token_ms"] + parts["decode_ms"] == pytest.approx(parts["total_ms"], abs=0.1)
    assert told["steps_ms"] == []


def test_an_answer_that_came_whole_is_told_in_the_same_way(server):
    ask(server, "whole")
    told = ended(server, "whole")
    assert (told["is_stream"], told["status"]) == (False, "completed")
    assert told["finish_reason"] == "length"
    assert told["usage"]["completion_tokens"] == 5
    assert None not in {told["timeline"][part] for part in ("queue_ms", "prefill_ms", "total_ms")}


def test_the_trace_in_the_body_is_what_is_told_later(server):
    trace = ask(server, "traced", trace="step", max_tokens=400).json()["trace"]
    assert trace["request_id"] == "traced"
    told = ended(server, "traced")
    assert trace["steps_ms"] == told["steps_ms"]
    assert len(trace["steps_ms"]) >= 2
    assert trace["steps_ms"] == sorted(trace["steps_ms"])
    for part in ("queue_ms", "prefill_ms", "first_token_ms"):
        assert trace[part] == told["timeline"][part]


def test_the_newest_is_first_and_none_tells_what_was_said(server):
    for number in range(3):
        ask(server, f"number-{number}")
    reply = httpx.get(f"{server.url}/v1/requests", params={"limit": 2})
    assert [told["id"] for told in reply.json()["data"]] == ["number-2", "number-1"]
    assert "vermilion" not in reply.text


def test_an_answer_is_told_while_it_is_under_way_and_who_left_it(server):
    with asking(server, "left"):
        told = request(server, "left")
        assert (told["status"], told["http_status"]) == ("running", 200)
        assert told["timeline"]["total_ms"] is None
        now = metrics(server)
        assert now["eloquio_engine_requests", "tiny", "running"] == 1
    assert ended(server, "left")["status"] == "client_left"
    key = ("eloquio_requests_total", "", "tiny", "client_left", "/chat/completions")
    assert until(lambda: metrics(server).get(key), 30) == 1


def test_a_run_is_told_by_its_own_id(server):
    run_id = runs.start(server, max_tokens=5)
    runs.ended(server, run_id)
    told = ended(server, run_id)
    assert (told["route"], told["status"], told["model"]) == ("/runs", "completed", "tiny")
    assert told["usage"]["completion_tokens"] == 5


@pytest.mark.parametrize("path", ["/metrics", "/v1/metrics"])
def test_what_was_answered_is_counted(server, path):
    ask(server, "one", stream=True)
    ask(server, "two")
    ended(server, "two")
    told = metrics(server, path)
    assert told["eloquio_requests_total", "", "tiny", "completed", "/chat/completions"] == 2
    assert told["eloquio_tokens_total", "completion", "tiny"] == 10
    assert told["eloquio_tokens_total", "prompt", "tiny"] > 10
    assert told["eloquio_first_token_seconds_count", "tiny", "/chat/completions"] == 2
    assert told["eloquio_queue_seconds_count", "tiny"] == 2
    assert told["eloquio_request_seconds_sum", "tiny", "/chat/completions"] > 0
    assert told["eloquio_engine_up", "tiny"] == 1
    assert told["eloquio_engine_resident_bytes", "tiny"] > 1_000_000


def test_a_name_that_nothing_here_has_is_counted_without_it(server):
    assert ask(server, "made-up", model="org/made-up").status_code == 404
    told = metrics(server)
    code = "model_not_downloaded"
    assert told["eloquio_requests_total", code, "", "failed", "/chat/completions"] == 1
    assert not [key for key in told if "org/made-up" in key]
    assert request(server, "made-up")["http_status"] == 404


def test_a_crash_and_the_start_after_it_are_counted(server):
    [engine] = httpx.get(f"{server.url}/status").json()["engines"]
    with asking(server, "crashed") as chunks:
        os.kill(engine["pid"], signal.SIGKILL)
        for _ in chunks:
            pass
    told = ended(server, "crashed")
    assert (told["status"], told["http_status"]) == ("failed", 200)
    assert told["error_code"]
    key = ("eloquio_engine_restarts_total", "tiny")
    until(lambda: metrics(server)[key] == 1, 30)
    until(lambda: metrics(server)["eloquio_engine_up", "tiny"] == 1, 30)


def test_where_a_key_is_asked_for_it_is_asked_for_here_too(home):
    with serving(home, "--no-load-on-start", ELOQUIO_API_KEY="my own words") as server:
        for path in ("/metrics", "/v1/metrics", "/v1/requests", "/v1/logs?follow=false"):
            assert httpx.get(f"{server.url}{path}").status_code == 401
            key = {"authorization": "Bearer my own words"}
            assert httpx.get(f"{server.url}{path}", headers=key).status_code == 200


def test_each_answer_is_one_line_in_the_log_with_its_request(server):
    ask(server, "logged")
    file = server.home / "logs" / "eloquio.log"

    def line():
        lines = [json.loads(text) for text in file.read_text().splitlines()]
        return [told for told in lines if told["event"] == "answered"]

    [told] = until(line, 20)
    assert (told["request_id"], told["id"]) == ("logged", "logged")
    assert (told["model"], told["outcome"], told["completion_tokens"]) == ("tiny", "completed", 5)
    assert told["first_token_ms"] > 0
    assert "vermilion" not in file.read_text()


def test_the_engines_own_words_are_read_without_a_path(server):
    with reading_logs(server, tail=500, follow=False) as log:
        told = list(log)
    assert {event["model"] for event in told} == {"tiny"}
    text = "\n".join(event["line"] for event in told)
    assert "llama" in text
    assert str(server.home) not in text
    assert not re.search(r"(^|\s)/\w+/", text)
    with reading_logs(server, tail=3, follow=False) as log:
        last = list(log)
    assert [event["line"] for event in last] == text.split("\n")[-3:]


def test_a_log_is_followed_through_a_stop_and_a_start(server):
    with reading_logs(server, tail=1, model="tiny") as log:
        next(log)
        httpx.post(f"{server.url}/unload", json={"model_path": "tiny"}, timeout=60)
        load(server)
        followed = []
        for event in log:
            followed.append(event["line"])
            if "listening" in event["line"]:
                break
    with reading_logs(server, tail=500, follow=False) as log:
        whole = [event["line"] for event in log]
    # Of the new start nothing is missing.
    end = next(index for index, line in enumerate(whole) if "listening" in line) + 1
    assert followed[-end:] == whole[:end]


def test_a_log_of_another_model_stays_silent(server):
    with reading_logs(server, model="other", follow=False) as log:
        assert list(log) == []


def test_a_log_that_is_followed_ends_with_the_server(server):
    with reading_logs(server, tail=1) as log:
        next(log)
        server.process.send_signal(signal.SIGINT)
        for _ in log:
            pass
        # Not cut: it came to an end that its reader takes for one.
    server.process.wait(timeout=15)
    assert "Traceback" not in (server.home / "stderr.txt").read_text()
