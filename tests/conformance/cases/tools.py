"""A chat that calls the client's functions."""

import json
from typing import Any

import openai
from pydantic import BaseModel

from conformance import shown
from conformance.case import Cases
from conformance.target import QUESTION, Target, text_of, valid
from fixtures.calling import MESSAGES, TOOLS

cases = Cases("tools", "tools")
case = cases.case

SHOWN = shown.chat()
BOTH = [shown.WEATHER, shown.CLOCK]
NAMED = {"type": "function", "function": {"name": "weather"}}


class Weather(BaseModel):
    """Tells the weather in a town."""

    town: str


def calls_of(answer: Any) -> list[Any]:
    [choice] = answer.choices
    return choice.message.tool_calls or []


def pieces_of(chunks: list[Any]) -> dict[int, list[Any]]:
    """The pieces of each call, in their order."""
    pieces: dict[int, list[Any]] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            for piece in choice.delta.tool_calls or ():
                pieces.setdefault(piece.index, []).append(piece)
    return pieces


@case()
def a_call_that_is_required_is_made(target: Target) -> None:
    answer = valid(target.chat(SHOWN, tools=BOTH, tool_choice="required", max_tokens=200))
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.choices[0].message.content is None
    [call] = calls_of(answer)
    assert (call.type, call.function.name) == ("function", "weather")
    assert json.loads(call.function.arguments) == {"town": "Paris"}


@case()
def a_call_that_is_required_is_made_though_nothing_asks_for_it(target: Target) -> None:
    for choice in ("required", NAMED):
        fields = {"tools": BOTH, "tool_choice": choice, "max_tokens": 200}
        answer = valid(target.chat(QUESTION, **fields))
        calls = calls_of(answer)
        assert calls
        assert all(isinstance(json.loads(call.function.arguments), dict) for call in calls)
        assert answer.choices[0].message.content is None
        assert answer.choices[0].finish_reason == "tool_calls"
        if choice == NAMED:
            assert [call.function.name for call in calls] == ["weather"]
        chunks = target.chunks(QUESTION, **fields)
        assert text_of(chunks) == ""
        names = [pieces[0].function.name for pieces in pieces_of(chunks).values()]
        assert names == [call.function.name for call in calls]


@case()
def a_required_call_can_be_cut_off(target: Target) -> None:
    answer = target.chat(QUESTION, tools=BOTH, tool_choice="required", max_tokens=2)
    assert answer.choices[0].finish_reason == "length"
    assert not calls_of(answer)


@case()
def two_calls_have_two_ids(target: Target) -> None:
    first, second = (
        calls_of(target.chat(SHOWN, tools=BOTH, tool_choice="required", max_tokens=200))[0]
        for _ in range(2)
    )
    assert first.id
    assert first.id != second.id


@case()
def only_the_function_that_is_named_is_called(target: Target) -> None:
    beta = {"type": "function", "function": {"name": "beta"}}
    answer = target.chat(MESSAGES, tools=TOOLS, tool_choice=beta, max_tokens=200)
    assert [call.function.name for call in calls_of(answer)] == ["beta"]


@case()
def no_function_is_called_where_none_may_be(target: Target) -> None:
    choice = target.chat(QUESTION, tools=BOTH, tool_choice="none", max_tokens=30).choices[0]
    assert choice.message.content
    assert choice.message.tool_calls is None


@case()
def a_call_is_made_where_the_model_sees_fit(target: Target) -> None:
    for fields in ({}, {"tool_choice": "auto"}):
        answer = valid(target.chat(SHOWN, tools=BOTH, max_tokens=200, **fields))
        assert [call.function.name for call in calls_of(answer)] == ["weather"]
        assert answer.choices[0].finish_reason == "tool_calls"


@case()
def several_calls_come_in_one_answer(target: Target) -> None:
    calls = calls_of(target.chat(MESSAGES, tools=TOOLS, max_tokens=200))
    assert [call.function.name for call in calls] == ["alpha", "beta"]
    assert len({call.id for call in calls}) == 2


@case()
def one_call_comes_where_parallel_ones_are_not_wanted(target: Target) -> None:
    fields = {"tools": TOOLS, "max_tokens": 200}
    assert len(calls_of(target.chat(MESSAGES, **fields))) == 2
    assert len(calls_of(target.chat(MESSAGES, **fields, parallel_tool_calls=False))) == 1
    streamed = pieces_of(target.chunks(MESSAGES, **fields, parallel_tool_calls=False))
    assert list(streamed) == [0]


@case()
def a_call_is_streamed_in_pieces(target: Target) -> None:
    chunks = target.chunks(MESSAGES, tools=TOOLS, max_tokens=200)
    for number, pieces in pieces_of(chunks).items():
        assert [bool(piece.id) for piece in pieces] == [True] + [False] * (len(pieces) - 1)
        assert pieces[0].type == "function"
        assert pieces[0].function.name == ("alpha", "beta")[number]
        assert not any(piece.function.name for piece in pieces[1:])
        arguments = "".join(piece.function.arguments or "" for piece in pieces)
        assert list(json.loads(arguments)) == ["x"]
    assert len(pieces_of(chunks)) == 2
    assert text_of(chunks).strip() == ""


@case()
def a_stream_that_called_ends_with_its_reason(target: Target) -> None:
    chunks = target.chunks(SHOWN, tools=BOTH, tool_choice="required", max_tokens=200)
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert chunks[-1].choices[0].delta.to_dict() == {}
    assert chunks[0].choices[0].delta.role == "assistant"


@case()
def the_stream_helper_parses_arguments(target: Target) -> None:
    with target.openai.chat.completions.stream(
        model=target.model,
        messages=SHOWN,
        temperature=0,
        max_tokens=200,
        tools=[openai.pydantic_function_tool(Weather, name="weather")],
        tool_choice="required",
    ) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    deltas = [e for e in events if e.type == "tool_calls.function.arguments.delta"]
    done = [e for e in events if e.type == "tool_calls.function.arguments.done"]
    assert len(deltas) > 1
    assert isinstance(done[0].parsed_arguments, Weather)
    assert isinstance(calls_of(final)[0].function.parsed_arguments, Weather)


@case()
def the_parsing_helper_parses_arguments(target: Target) -> None:
    answer = target.openai.chat.completions.parse(
        model=target.model,
        messages=SHOWN,
        temperature=0,
        max_tokens=200,
        tools=[openai.pydantic_function_tool(Weather, name="weather")],
        tool_choice="required",
    )
    assert isinstance(calls_of(answer)[0].function.parsed_arguments, Weather)


@case()
def a_call_and_its_result_can_be_sent_back(target: Target) -> None:
    answer = target.chat(SHOWN, tools=BOTH, tool_choice=NAMED, max_tokens=200)
    [call] = calls_of(answer)
    result = {"role": "tool", "tool_call_id": call.id, "content": shown.RESULT}
    sent = [*SHOWN, answer.choices[0].message, result]
    final = target.chat(sent, tools=BOTH, max_tokens=40)
    assert shown.RESULT in final.choices[0].message.content
    assert final.choices[0].finish_reason == "stop"


@case()
def tools_are_read_as_a_part_of_the_prompt(target: Target) -> None:
    plain = target.chat(max_tokens=1).usage.prompt_tokens
    assert target.chat(max_tokens=1, tools=BOTH).usage.prompt_tokens > plain + 20


@case()
def an_empty_list_of_tools_is_none(target: Target) -> None:
    answer = target.chat(QUESTION, tools=[])
    assert "Paris" in answer.choices[0].message.content
