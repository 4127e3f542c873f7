"""Anthropic's messages, by Anthropic's client."""

import asyncio
from typing import Any

import anthropic
from anthropic import AsyncAnthropic

from conformance import shown
from conformance.case import Cases
from conformance.target import CAPITAL, QUESTION, Target, refused, valid

cases = Cases("messages", "messages")
case = cases.case

CAT = [
    {"role": "user", "content": "My cat is called Zog."},
    {"role": "assistant", "content": [{"type": "text", "text": "Zog is a fine name for a cat."}]},
    {"role": "user", "content": [{"type": "text", "text": "What is my cat called?"}]},
]
TOOLS = [shown.MESSAGES_WEATHER]
NAMED = {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}


@case()
def a_message_is_whole(target: Target) -> None:
    message = valid(target.message())
    [block] = message.content
    assert block.type == "text"
    assert "Paris" in block.text
    assert (message.type, message.role) == ("message", "assistant")
    assert (message.stop_reason, message.stop_sequence) == ("end_turn", None)
    assert message.id.startswith("msg_")
    assert message.model == target.model
    assert message._request_id


@case()
def usage_of_a_message_is_told(target: Target) -> None:
    usage = target.message(max_tokens=3).usage
    assert usage.input_tokens > 10
    assert usage.output_tokens == 3


@case()
def max_tokens_cuts_a_message(target: Target) -> None:
    message = target.message(max_tokens=3)
    assert message.stop_reason == "max_tokens"


@case()
def a_stop_sequence_is_named_and_not_told(target: Target) -> None:
    message = target.message(stop_sequences=["nowhere", " is Pa"])
    assert message.content[0].text == "The capital of France"
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", " is Pa")


@case()
def a_streamed_stop_sequence_is_named_and_not_told(target: Target) -> None:
    asked = target.for_messages(stop_sequences=[" is Pa"])
    with target.anthropic.messages.stream(**asked) as stream:
        assert "".join(stream.text_stream) == "The capital of France"
        message = stream.get_final_message()
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", " is Pa")


@case()
def earlier_turns_of_messages_are_read(target: Target) -> None:
    assert "Zog" in target.message(CAT, max_tokens=20).content[0].text


@case()
def a_system_text_and_its_blocks_are_the_same(target: Target) -> None:
    text = "You are a librarian who loves rivers."
    blocks = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]
    counts = [
        target.anthropic.messages.count_tokens(model=target.model, messages=QUESTION, **fields)
        for fields in ({}, {"system": text}, {"system": blocks})
    ]
    assert counts[0].input_tokens < counts[1].input_tokens == counts[2].input_tokens


@case()
def a_count_is_what_a_message_then_takes(target: Target) -> None:
    asked = {"model": target.model, "messages": CAT, "system": "You are kind."}
    counted = target.anthropic.messages.count_tokens(**asked)
    message = target.anthropic.messages.create(**asked, max_tokens=1)
    assert message.usage.input_tokens == counted.input_tokens


@case()
def an_answer_that_was_begun_is_gone_on_with(target: Target) -> None:
    begun = [*QUESTION, {"role": "assistant", "content": "The capital of France is"}]
    text = target.message(begun).content[0].text
    assert text.startswith(" Paris")


@case()
def the_helper_makes_of_a_stream_what_comes_whole(target: Target) -> None:
    whole = target.message()
    with target.anthropic.messages.stream(**target.for_messages()) as stream:
        events = list(stream)
        final = stream.get_final_message()
    assert final.to_dict() == whole.to_dict() | {"id": final.id}
    texts = [event.text for event in events if event.type == "text"]
    assert len(texts) > 2
    assert "".join(texts) == whole.content[0].text


@case()
def events_of_a_message_come_in_their_order(target: Target) -> None:
    events = list(target.message(max_tokens=3, stream=True))
    kinds = [event.type for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(kinds[2:-3]) == {"content_block_delta"}
    assert events[0].message.usage.input_tokens > 10
    assert events[-2].usage.output_tokens == 3


@case()
def a_message_is_streamed_to_the_asynchronous_client(target: Target) -> None:
    assert "Paris" in asyncio.run(_stream(target))


async def _stream(target: Target) -> str:
    async with (
        AsyncAnthropic(base_url=target.base_url, api_key="any", max_retries=0) as client,
        client.messages.stream(**target.for_messages()) as stream,
    ):
        return "".join([text async for text in stream.text_stream])


@case("tools")
def a_tool_is_used(target: Target) -> None:
    message = valid(
        target.message(shown.messages(), tools=TOOLS, tool_choice={"type": "any"}, max_tokens=100)
    )
    [call] = message.content
    assert (call.type, call.name, call.input) == ("tool_use", "weather", {"town": "Paris"})
    assert call.id.startswith("toolu_")
    assert message.stop_reason == "tool_use"


@case("tools")
def a_tool_is_used_though_nothing_asks_for_it(target: Target) -> None:
    message = valid(target.message(QUESTION, tools=TOOLS, tool_choice=NAMED, max_tokens=200))
    assert [(block.type, block.name) for block in message.content] == [("tool_use", "weather")]
    assert message.stop_reason == "tool_use"


@case("tools")
def a_streamed_tools_input_is_parsed(target: Target) -> None:
    asked = target.for_messages(shown.messages(), tools=TOOLS, tool_choice=NAMED, max_tokens=100)
    with target.anthropic.messages.stream(**asked) as stream:
        pieces = [event.partial_json for event in stream if event.type == "input_json"]
        message = stream.get_final_message()
    [call] = message.content
    assert len(pieces) > 1
    assert call.input == {"town": "Paris"}


@case("tools")
def a_tools_result_goes_back(target: Target) -> None:
    said, fields = shown.messages(), {"tools": TOOLS, "max_tokens": 100}
    first = target.message(said, **fields, tool_choice=NAMED)
    call = first.content[-1]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": shown.RESULT}
    said += [
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [result]},
    ]
    assert shown.RESULT in target.message(said, **fields).content[0].text


@case("thinking")
def thinking_is_a_block_of_its_own(target: Target) -> None:
    message = valid(target.message(model=target.models.thinking, max_tokens=6))
    assert [block.type for block in message.content] == ["thinking"]
    assert message.content[0].thinking
    assert message.content[0].signature


@case("thinking")
def thinking_can_be_turned_off(target: Target) -> None:
    off = {"type": "disabled"}
    message = target.message(model=target.models.thinking, max_tokens=6, thinking=off)
    assert [block.type for block in message.content] == ["text"]


WRONG: dict[str, tuple[dict[str, Any], int, str]] = {
    "no message": ({"messages": []}, 400, "messages"),
    "no token to say": ({"max_tokens": 0}, 400, "max_tokens"),
    "a temperature above one": ({"extra_body": {"temperature": 2}}, 400, "temperature"),
    "an unknown field": ({"extra_body": {"n": 2}}, 400, "n"),
    "a choice without tools": ({"tool_choice": {"type": "any"}}, 400, "tool_choice"),
    "a tool of Anthropic's": (
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        501,
        "tools.0",
    ),
}


@cases.each(WRONG)
def a_message_is_refused(target: Target, fields: Any, status: int, param: str) -> None:
    error = refused(anthropic.APIStatusError, lambda: target.message(**fields))
    assert error.status_code == status
    assert error.type == "invalid_request_error"
    assert error.body["error"]["param"] == param
    assert error.body["request_id"] == error.request_id


@case()
def a_message_of_an_unknown_model_is_not_found(target: Target) -> None:
    error = refused(anthropic.NotFoundError, lambda: target.message(model="org/nothing"))
    assert error.type == "not_found_error"


@case()
def a_stream_of_an_unknown_model_is_refused_before_it_begins(target: Target) -> None:
    asked = target.for_messages(model="org/nothing")

    def read() -> object:
        with target.anthropic.messages.stream(**asked) as stream:
            return stream.get_final_message()

    refused(anthropic.NotFoundError, read)


@case()
def a_hint_for_a_cache_is_taken(target: Target) -> None:
    block = {"type": "text", "text": CAPITAL, "cache_control": {"type": "ephemeral"}}
    message = target.message([{"role": "user", "content": [block]}])
    assert "Paris" in message.content[0].text
    assert message.usage.cache_read_input_tokens == 0
