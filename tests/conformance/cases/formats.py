"""Answers in a form that was asked for."""

import json
from typing import Any, Literal

from openai import LengthFinishReasonError
from pydantic import BaseModel

from conformance.case import Cases
from conformance.target import CAPITAL, QUESTION, Target, refused, text_of

cases = Cases("formats", "schema")
case = cases.case


class Capital(BaseModel):
    country: str
    capital: str


class Weather(BaseModel):
    town: Literal["Paris"]
    sky: Literal["clear", "grey"]
    is_warm: bool


class Place(BaseModel):
    name: Literal["river"]
    weather: Weather


SCHEMA = {
    "type": "object",
    "properties": {"capital": {"type": "string", "enum": ["Paris", "Rome"]}},
    "required": ["capital"],
    "additionalProperties": False,
}
BY_SCHEMA = {
    "type": "json_schema",
    "json_schema": {"name": "capital", "schema": SCHEMA, "strict": True},
}


@case()
def a_json_object_comes_bare(target: Target) -> None:
    question = "Tell the capital of France as a JSON object in a code block."
    answer = target.chat(
        [{"role": "user", "content": question}],
        response_format={"type": "json_object"},
        max_tokens=200,
    )
    text = answer.choices[0].message.content
    assert text.lstrip().startswith("{")
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(text), dict)


@case()
def an_answer_keeps_to_its_schema(target: Target) -> None:
    answer = target.chat(response_format=BY_SCHEMA, max_tokens=60)
    assert json.loads(answer.choices[0].message.content) == {"capital": "Paris"}
    assert answer.choices[0].finish_reason == "stop"


@case()
def a_streamed_answer_keeps_to_its_schema(target: Target) -> None:
    text = text_of(target.chunks(response_format=BY_SCHEMA, max_tokens=60))
    assert json.loads(text) == {"capital": "Paris"}


@case()
def a_plain_text_may_be_asked_for_by_name(target: Target) -> None:
    answer = target.chat(response_format={"type": "text"})
    assert "Paris" in answer.choices[0].message.content


@case()
def an_answer_is_parsed_into_the_model_that_was_asked_for(target: Target) -> None:
    parsed = parse(target, Capital).choices[0].message.parsed
    assert isinstance(parsed, Capital)


@case()
def a_model_within_a_model_is_parsed(target: Target) -> None:
    parsed = parse(target, Place).choices[0].message.parsed
    assert parsed.name == "river"
    assert parsed.weather.town == "Paris"


@case()
def an_answer_that_was_cut_is_not_parsed(target: Target) -> None:
    error = refused(LengthFinishReasonError, lambda: parse(target, Capital, max_tokens=3))
    assert error.completion.usage.completion_tokens == 3


@case()
def the_stream_helper_parses_as_it_comes(target: Target) -> None:
    with target.openai.chat.completions.stream(
        model=target.model,
        messages=QUESTION,
        temperature=0,
        max_tokens=80,
        response_format=Weather,
    ) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    [done] = [event for event in events if event.type == "content.done"]
    assert isinstance(done.parsed, Weather)
    assert final.choices[0].message.parsed == done.parsed


@case("responses")
def a_response_is_parsed_into_the_model_that_was_asked_for(target: Target) -> None:
    response = target.openai.responses.parse(
        model=target.model, input=CAPITAL, text_format=Weather, temperature=0, max_output_tokens=80
    )
    assert isinstance(response.output_parsed, Weather)
    assert response.text.format.type == "json_schema"


@case("responses")
def a_response_may_be_any_json_object(target: Target) -> None:
    response = target.respond(
        "Tell the capital of France as a JSON object in a code block.",
        text={"format": {"type": "json_object"}},
        max_output_tokens=100,
    )
    assert response.output_text.lstrip().startswith("{")


@case("messages")
def a_message_keeps_to_its_schema(target: Target) -> None:
    message = target.message(
        max_tokens=60, output_config={"format": {"type": "json_schema", "schema": SCHEMA}}
    )
    assert json.loads(message.content[0].text) == {"capital": "Paris"}


def parse(target: Target, form: type[BaseModel], max_tokens: int = 80) -> Any:
    return target.openai.chat.completions.parse(
        model=target.model,
        messages=QUESTION,
        temperature=0,
        max_tokens=max_tokens,
        response_format=form,
    )
