"""The chunks that end an answer, as its client gets them."""

import json

from eloquio.answers.exchange import Exchange
from eloquio.chat.last_chunks import LastChunks


def event(**fields):
    return b"data: " + json.dumps(fields, separators=(",", ":")).encode() + b"\n\n"


FINISH = event(choices=[{"finish_reason": "length", "index": 0, "delta": {}}])


def usage(tokens, prompt=5):
    counts = {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}
    return event(choices=[], usage=counts, timings={"prompt_ms": 7.5})


def exchange(**fields):
    return Exchange(id="1", route="/chat/completions", **fields)


def test_usage_comes_only_where_it_was_asked_for():
    asked = exchange()
    last = LastChunks(asked, 1, wants_usage=False)
    assert last.take(FINISH + usage(3)) == FINISH
    assert asked.usage["completion_tokens"] == 3
    assert asked.finish_reason == "length"
    assert asked.timeline.prompt_ms == 7.5


def test_usage_that_was_asked_for_is_the_engines():
    last = LastChunks(exchange(), 1, wants_usage=True)
    assert last.take(usage(3)) == usage(3)


def test_several_choices_have_one_usage_that_counts_them_all():
    asked = exchange()
    last = LastChunks(asked, 2, wants_usage=True)
    assert last.take(usage(3)) == b""
    assert last.take(FINISH + usage(4)) == FINISH + usage(7)
    assert asked.usage["total_tokens"] == 12


def test_a_trace_that_was_asked_for_comes_with_the_usage():
    last = LastChunks(exchange(trace_level="request"), 1, wants_usage=False)
    chunk = json.loads(last.take(usage(3)).removeprefix(b"data: "))
    assert chunk["trace"]["prefill_ms"] == 7.5
    assert chunk["choices"] == []


def test_a_text_about_such_chunks_passes_as_it_is():
    chunk = event(choices=[{"delta": {"content": '"choices":[] "finish_reason":"stop"'}}])
    asked = exchange()
    assert LastChunks(asked, 1, wants_usage=False).take(chunk) == chunk
    assert asked.finish_reason is None
