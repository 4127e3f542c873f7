"""Answers that a client leaves, or has cancelled."""

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import openai

from conformance.case import Cases
from conformance.target import QUESTION, Target, refused

cases = Cases("endings", "status")
case = cases.case

TALE: list[Any] = [{"role": "user", "content": "Tell a very long story about a river."}]
# The engine is told at once; this leaves room for a machine that is busy.
SECONDS = 10.0


def busy(target: Target) -> int:
    """How many requests the model's engine is at."""
    engines = target.http.get("/status").json()["engines"]
    return sum(engine["busy"] for engine in engines if engine["model"] == target.model)


def until(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it didn't happen in time"
        time.sleep(0.02)


@case()
def a_stream_that_is_closed_frees_the_engine(target: Target) -> None:
    stream = target.chat(TALE, max_tokens=4000, stream=True)
    for _, _ in zip(range(3), stream, strict=False):
        assert busy(target) == 1
    stream.close()
    until(lambda: busy(target) == 0)


@case()
def a_whole_answer_that_nobody_waits_for_frees_the_engine(target: Target) -> None:
    def ask() -> Any:
        return target.chat(TALE, max_tokens=4000, timeout=1.0)

    refused(openai.APITimeoutError, ask)
    until(lambda: busy(target) == 0)


@case()
def a_stream_that_is_closed_beside_another_leaves_that_one_whole(target: Target) -> None:
    other = target.chat(TALE, max_tokens=60, stream=True, temperature=0)
    next(iter(other))
    closed = target.chat(TALE, max_tokens=4000, stream=True)
    next(iter(closed))
    closed.close()
    chunks = list(other)
    assert chunks[-1].choices[0].finish_reason in ("length", "stop")
    until(lambda: busy(target) == 0)


@case("messages")
def a_message_that_is_closed_frees_the_engine(target: Target) -> None:
    stream = target.message(TALE, max_tokens=4000, stream=True)
    next(iter(stream))
    stream.close()
    until(lambda: busy(target) == 0)


@case("responses")
def a_response_that_is_closed_frees_the_engine(target: Target) -> None:
    stream = target.respond(TALE, max_output_tokens=4000, stream=True)
    next(iter(stream))
    stream.close()
    until(lambda: busy(target) == 0)


@case()
def a_stream_that_is_cancelled_ends_with_an_error(target: Target) -> None:
    asked = {"extra_body": {"cancel_id": "of-a-stream", "temperature": 0}}
    stream = target.chat(TALE, max_tokens=4000, stream=True, **asked)
    next(iter(stream))
    ended = target.post("/cancel", {"cancel_id": "of-a-stream"})
    assert ended.json()["status"] == "cancelled"
    error = refused(openai.APIError, lambda: list(stream))
    assert error.code == "request_cancelled"
    until(lambda: busy(target) == 0)


@case()
def a_whole_answer_that_is_cancelled_is_a_499(target: Target) -> None:
    body = {"model": target.model, "messages": TALE, "max_tokens": 4000, "cancel_id": "of-a-whole"}
    replies: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: replies.append(target.post("/chat/completions", body)))
    asking.start()
    until(lambda: busy(target) == 1)
    target.post("/cancel", {"cancel_id": "of-a-whole"})
    asking.join(SECONDS)
    assert replies[0].status_code == 499
    assert replies[0].json()["error"]["code"] == "request_cancelled"


@case()
def a_cancel_of_what_is_over_does_no_harm(target: Target) -> None:
    answer = target.chat(max_tokens=1, extra_body={"cancel_id": "of-what-is-over"})
    assert answer.choices
    for _ in range(2):
        reply = target.post("/cancel", {"cancel_id": "of-what-is-over"})
        assert (reply.status_code, reply.json()["status"]) == (200, "ended")
    assert target.chat(QUESTION, max_tokens=1).choices
