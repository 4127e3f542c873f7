"""A chat's stream, as a client's reader and as its helper see it, and as bytes."""

import asyncio
import json
from typing import Any

from openai import AsyncOpenAI

from conformance.case import Cases
from conformance.target import GREEDY, QUESTION, Target, text_of, valid

cases = Cases("streams")
case = cases.case

WITH_USAGE = {"stream_options": {"include_usage": True}}


@case()
def a_stream_says_what_the_whole_answer_says(target: Target) -> None:
    whole = target.chat()
    chunks = target.chunks(**WITH_USAGE)
    assert text_of(chunks) == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens


@case()
def every_chunk_is_whole(target: Target) -> None:
    chunks = [valid(chunk) for chunk in target.chunks(**WITH_USAGE)]
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}


@case()
def all_chunks_are_of_one_answer(target: Target) -> None:
    chunks = target.chunks(max_tokens=12, **WITH_USAGE)
    assert {chunk.model for chunk in chunks} == {target.model}
    assert len({chunk.id for chunk in chunks}) == 1
    assert len({chunk.created for chunk in chunks}) == 1
    assert chunks[0].id.startswith("chatcmpl-")


@case()
def the_role_comes_once_and_first(target: Target) -> None:
    roles = [chunk.choices[0].delta.role for chunk in target.chunks()]
    assert roles[0] == "assistant"
    assert set(roles[1:]) == {None}


@case()
def the_reason_comes_once_and_last_with_nothing_else(target: Target) -> None:
    reasons = [chunk.choices[0].finish_reason for chunk in target.chunks()]
    assert reasons[-1] == "stop"
    assert set(reasons[:-1]) == {None}
    assert target.chunks()[-1].choices[0].delta.to_dict() == {}


@case()
def a_cut_stream_says_so(target: Target) -> None:
    assert target.chunks(max_tokens=2)[-1].choices[0].finish_reason == "length"


@case()
def a_stream_comes_in_many_pieces(target: Target) -> None:
    assert sum(bool(text_of([chunk])) for chunk in target.chunks(max_tokens=6)) > 3


@case()
def usage_is_not_told_unasked(target: Target) -> None:
    for fields in ({}, {"stream_options": {"include_usage": False}}):
        assert [chunk.usage for chunk in target.chunks(max_tokens=3, **fields) if chunk.usage] == []


@case()
def usage_comes_last_with_no_choices(target: Target) -> None:
    *chunks, last = target.chunks(max_tokens=3, **WITH_USAGE)
    assert last.choices == []
    assert last.usage.completion_tokens == 3
    assert last.usage.total_tokens == last.usage.prompt_tokens + 3
    assert not any(chunk.usage for chunk in chunks)


@case()
def two_choices_are_streamed_beside_each_other(target: Target) -> None:
    chunks = target.chunks(n=2, max_tokens=4, **WITH_USAGE)
    for index in (0, 1):
        own = [c for chunk in chunks for c in chunk.choices if c.index == index]
        assert [choice.delta.role for choice in own].count("assistant") == 1
        assert [choice.finish_reason for choice in own if choice.finish_reason] == ["length"]
        assert text_of(chunks, index)
    assert [chunk.usage.completion_tokens for chunk in chunks if chunk.usage] == [8]


@case()
def a_stop_text_never_shows_in_a_stream(target: Target) -> None:
    chunks = target.chunks(stop=[" is Pa"])
    assert text_of(chunks) == "The capital of France"
    assert chunks[-1].choices[0].finish_reason == "stop"


@case()
def the_bytes_are_events_of_one_line_and_end_once(target: Target) -> None:
    events = target.raw_stream(max_tokens=4).text.split("\n\n")
    assert events.pop() == ""
    assert events.pop() == "data: [DONE]"
    for event in events:
        assert event.startswith("data: {")
        assert "\n" not in event
        assert json.loads(event.removeprefix("data: "))["choices"]


@case()
def a_stream_has_its_headers(target: Target) -> None:
    headers = target.raw_stream(max_tokens=1).headers
    assert headers["content-type"].startswith("text/event-stream")
    assert headers["cache-control"] == "no-cache"
    assert headers["x-accel-buffering"] == "no"
    assert headers["x-request-id"]
    assert "access-control-allow-origin" not in headers


@case()
def a_stream_can_be_read_line_by_line(target: Target) -> None:
    with target.openai.chat.completions.with_streaming_response.create(
        model=target.model, messages=QUESTION, stream=True, max_tokens=2, extra_body=GREEDY
    ) as reply:
        lines = [line for line in reply.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    assert len(lines) >= 4


@case()
def the_stream_helper_tells_text_as_it_comes(target: Target) -> None:
    with target.openai.chat.completions.stream(
        model=target.model, messages=QUESTION, temperature=0
    ) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    pieces = [event.delta for event in events if event.type == "content.delta"]
    [done] = [event for event in events if event.type == "content.done"]
    assert len(pieces) > 2
    assert "".join(pieces) == done.content == final.choices[0].message.content
    assert final.choices[0].finish_reason == "stop"


@case()
def the_stream_helper_knows_usage_where_it_is_asked_for(target: Target) -> None:
    with target.openai.chat.completions.stream(
        model=target.model, messages=QUESTION, temperature=0, **WITH_USAGE
    ) as stream:
        final = stream.get_final_completion()
    assert final.usage.completion_tokens > 3


@case("logprobs")
def the_stream_helper_tells_probabilities(target: Target) -> None:
    with target.openai.chat.completions.stream(
        model=target.model, messages=QUESTION, temperature=0, max_tokens=3, logprobs=True
    ) as stream:
        events = list(stream)
    deltas = [event for event in events if event.type == "logprobs.content.delta"]
    [done] = [event for event in events if event.type == "logprobs.content.done"]
    assert len(deltas) == 3
    assert [token.token for token in deltas[-1].snapshot] == [t.token for t in done.content]


@case()
def streams_at_the_same_time_keep_apart(target: Target) -> None:
    towns = {"France": "Paris", "Italy": "Rome", "Germany": "Berlin"}
    texts = asyncio.run(_ask_together(target, list(towns)))
    for country, town in towns.items():
        others = set(towns.values()) - {town}
        assert town in texts[country]
        assert not any(other in texts[country] for other in others)


async def _ask_together(target: Target, countries: list[str]) -> dict[str, str]:
    async with AsyncOpenAI(
        base_url=f"{target.base_url}/v1", api_key="any", max_retries=0
    ) as client:

        async def ask(country: str) -> str:
            question: list[Any] = [
                {"role": "user", "content": f"What is the capital of {country}? Answer briefly."}
            ]
            stream = await client.chat.completions.create(
                model=target.model, messages=question, temperature=0, max_tokens=12, stream=True
            )
            return text_of([chunk async for chunk in stream])

        return dict(zip(countries, await asyncio.gather(*map(ask, countries)), strict=True))


@case("thinking")
def thinking_is_streamed_in_a_field_of_its_own(target: Target) -> None:
    chunks = target.chunks(model=target.models.thinking, max_tokens=6)
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert sum(bool(getattr(delta, "reasoning_content", None)) for delta in deltas) > 3
    assert text_of(chunks) == ""
