"""OpenAI's responses."""

import json
from typing import Any

import openai
from pydantic import BaseModel

from conformance import shown
from conformance.case import Cases
from conformance.target import CAPITAL, GREEDY, Target, refused, valid

cases = Cases("responses", "responses")
case = cases.case

CAT = [
    {"role": "user", "content": "My cat is called Zog."},
    {
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Zog is a fine name for a cat."}],
    },
    {"role": "user", "content": [{"type": "input_text", "text": "What is my cat called?"}]},
]
TOOLS = [shown.RESPONSES_WEATHER]
NAMED = {"type": "function", "name": "weather"}


class Weather(BaseModel):
    """Tells the weather in a town."""

    town: str


@case()
def a_response_is_whole(target: Target) -> None:
    response = valid(target.respond())
    assert "Paris" in response.output_text
    assert (response.object, response.status, response.error) == ("response", "completed", None)
    assert response.id.startswith("resp_")
    assert response.model == target.model
    [message] = response.output
    assert (message.type, message.role, message.status) == ("message", "assistant", "completed")
    assert message.content[0].type == "output_text"


@case()
def usage_of_a_response_adds_up(target: Target) -> None:
    usage = target.respond().usage
    assert usage.input_tokens > 10
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.input_tokens_details.cached_tokens >= 0
    assert usage.output_tokens_details.reasoning_tokens >= 0


@case()
def a_response_tells_back_what_it_was_asked_with(target: Target) -> None:
    response = target.respond(
        instructions="Be brief.", metadata={"topic": "rivers"}, max_output_tokens=2, top_p=0.5
    )
    assert response.instructions == "Be brief."
    assert response.metadata == {"topic": "rivers"}
    assert (response.max_output_tokens, response.top_p, response.temperature) == (2, 0.5, 0)
    assert response.tools == []


@case()
def a_response_that_was_cut_is_incomplete(target: Target) -> None:
    response = valid(target.respond(max_output_tokens=3))
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output[0].status == "incomplete"
    assert response.usage.output_tokens == 3


@case()
def all_that_was_said_is_read(target: Target) -> None:
    assert "Zog" in target.respond(CAT, max_output_tokens=20).output_text


@case()
def instructions_are_read(target: Target) -> None:
    plain = target.respond(max_output_tokens=1).usage.input_tokens
    told = target.respond(max_output_tokens=1, instructions="You love rivers. " * 5)
    assert told.usage.input_tokens > plain + 10


@case()
def a_response_can_be_sent_back_as_it_came(target: Target) -> None:
    first = target.respond()
    asked = [{"role": "user", "content": CAPITAL}, *first.output]
    second = valid(target.respond([*asked, {"role": "user", "content": "And of Italy?"}]))
    assert second.usage.input_tokens > first.usage.input_tokens + first.usage.output_tokens


@case()
def input_is_counted_as_it_is_then_read(target: Target) -> None:
    asked = {"model": target.model, "input": CAPITAL, "instructions": "Be brief."}
    counted = target.openai.responses.input_tokens.count(**asked)
    assert counted.object == "response.input_tokens"
    response = target.openai.responses.create(**asked, max_output_tokens=1)
    assert response.usage.input_tokens == counted.input_tokens


@case("logprobs")
def a_response_has_its_probabilities(target: Target) -> None:
    response = target.respond(
        max_output_tokens=3, top_logprobs=2, include=["message.output_text.logprobs"]
    )
    [part] = response.output[0].content
    assert "".join(token.token for token in part.logprobs) == part.text
    assert {len(token.top_logprobs) for token in part.logprobs} == {2}


@case()
def a_response_is_streamed_in_numbered_events(target: Target) -> None:
    events = [valid(event) for event in target.respond(stream=True)]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert set(kinds[4:-4]) == {"response.output_text.delta"}


@case()
def the_helper_makes_of_a_stream_what_comes_whole(target: Target) -> None:
    whole = target.respond()
    with target.openai.responses.stream(model=target.model, input=CAPITAL, temperature=0) as stream:
        events = list(stream)
        final = stream.get_final_response()
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(pieces) > 2
    assert "".join(pieces) == final.output_text == whole.output_text
    assert final.usage.output_tokens == whole.usage.output_tokens


@case()
def a_streamed_response_that_was_cut_is_incomplete(target: Target) -> None:
    *_, last = target.respond(stream=True, max_output_tokens=3)
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details.reason == "max_output_tokens"


@case()
def a_responses_stream_has_named_events_and_no_other_end(target: Target) -> None:
    reply = target.raw_stream("/responses", input=CAPITAL, max_output_tokens=2, **GREEDY)
    assert reply.headers["content-type"].startswith("text/event-stream")
    for event in reply.text.rstrip().split("\n\n"):
        name, data = event.split("\n")
        assert json.loads(data.removeprefix("data: "))["type"] == name.removeprefix("event: ")
    assert "[DONE]" not in reply.text


@case("tools")
def a_function_is_called_by_a_response(target: Target) -> None:
    response = valid(
        target.respond(shown.responses(), tools=TOOLS, tool_choice="required", max_output_tokens=99)
    )
    [call] = response.output
    assert (call.type, call.name, call.status) == ("function_call", "weather", "completed")
    assert json.loads(call.arguments) == {"town": "Paris"}
    assert response.status == "completed"


@case("tools")
def a_function_is_called_though_nothing_asks_for_it(target: Target) -> None:
    response = valid(target.respond("Hello", tools=TOOLS, tool_choice=NAMED, max_output_tokens=200))
    assert [(item.type, item.name) for item in response.output] == [("function_call", "weather")]


@case("tools")
def a_functions_output_goes_back(target: Target) -> None:
    fields: dict[str, Any] = {"tools": TOOLS, "max_output_tokens": 99}
    first = target.respond(shown.responses(), **fields, tool_choice=NAMED)
    call = first.output[-1]
    output = {
        "type": "function_call_output",
        "call_id": call.call_id,
        "output": shown.RESULT,
    }
    second = target.respond([*shown.responses(), *first.output, output], **fields)
    assert shown.RESULT in second.output_text


@case("tools")
def the_helper_parses_a_streamed_call(target: Target) -> None:
    with target.openai.responses.stream(
        model=target.model,
        input=shown.responses(),
        tools=[openai.pydantic_function_tool(Weather, name="weather")],
        tool_choice=NAMED,
        temperature=0,
        max_output_tokens=99,
    ) as stream:
        events = list(stream)
        [call] = stream.get_final_response().output
    kind = "response.function_call_arguments.delta"
    assert "".join(event.delta for event in events if event.type == kind) == call.arguments
    assert call.parsed_arguments == Weather(town="Paris")


@case("thinking")
def thinking_is_an_item_of_its_own(target: Target) -> None:
    response = valid(target.respond(model=target.models.thinking, max_output_tokens=6))
    assert [item.type for item in response.output] == ["reasoning"]
    assert response.output[0].content[0].text


WRONG = {
    "no input": ({"input": []}, 400, "input"),
    "an unknown role": ({"input": [{"role": "robot", "content": "Hi"}]}, 400, "input.0.role"),
    "a temperature below zero": ({"temperature": -1}, 400, "temperature"),
    "no token to say": ({"max_output_tokens": 0}, 400, "max_output_tokens"),
    "an earlier response": ({"previous_response_id": "resp_1"}, 501, "previous_response_id"),
    "a place in the background": ({"background": True}, 501, "background"),
    "a tool of OpenAI's": ({"tools": [{"type": "web_search"}]}, 501, "tools.0.type"),
}


@cases.each(WRONG)
def a_response_is_refused(target: Target, fields: Any, status: int, param: str) -> None:
    asked = {"asked": fields.get("input", CAPITAL)} | {
        name: value for name, value in fields.items() if name != "input"
    }
    error = refused(openai.APIStatusError, lambda: target.respond(**asked))
    assert (error.status_code, error.param) == (status, param)


@case()
def a_response_of_an_unknown_model_is_not_found(target: Target) -> None:
    error = refused(openai.NotFoundError, lambda: target.respond(model="org/nothing"))
    assert error.type == "invalid_request_error"
