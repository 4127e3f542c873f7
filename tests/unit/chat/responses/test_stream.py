"""What an engine says becomes a response and its events, as the official types have them."""

import json
from typing import get_args

import pytest
from openai.types.responses import Response, response_stream_event
from openai.types.responses.response_stream_event import ResponseStreamEvent
from pydantic import BaseModel

from eloquio.chat.responses.schema import ResponseRequest
from eloquio.chat.responses.stream import ResponseEvents
from eloquio.errors import EngineCrashed, EngineFault, QueueFull

USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 9,
    "total_tokens": 29,
    "prompt_tokens_details": {"cached_tokens": 4},
}
AWKWARD = '{"text": "a } and a \\" and\\n\\ta { 👩‍👩‍👧 ゴ"}'


def official_types():
    classes = get_args(get_args(ResponseStreamEvent)[0])
    return {get_args(known.model_fields["type"].annotation)[0]: known for known in classes}


OFFICIAL = official_types()


def chunk(finish_reason=None, **delta):
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"model": "tiny", "choices": [choice]}


def usage(**more):
    return {"model": "tiny", "choices": [], "usage": USAGE} | more


def call(position, arguments="", **head):
    function = {"arguments": arguments}
    if head:
        function["name"] = head.pop("name")
    return chunk(tool_calls=[{"index": position, "function": function, **head}])


START = chunk(role="assistant", content=None)
WHOLE = [
    START,
    chunk(reasoning_content="I "),
    chunk(reasoning_content="think."),
    chunk(content="Two "),
    chunk(content="calls."),
    call(0, id="call_a", name="weather"),
    *[call(0, piece) for piece in AWKWARD],
    call(1, id="call_b", name="time"),
    call(1, "{}"),
    chunk("tool_calls"),
    usage(),
]


def events_over(**request):
    return ResponseEvents(ResponseRequest.model_validate({"input": "Hi"} | request))


def told(chunks, **request):
    """The events and the response of an answer that ended well."""
    events = events_over(**request)
    seen = [event for each in chunks for event in events.feed(each)]
    return [*seen, *events.end()], events.response


def kinds(events):
    return [event["type"].removeprefix("response.") for event in events]


def without_repeats(names):
    return [name for at, name in enumerate(names) if at == 0 or names[at - 1] != name]


def test_an_answer_is_told_by_the_official_events_in_their_order():
    events, _ = told(WHOLE)
    passage = ["content_part.added", "{}.delta", "{}.done", "content_part.done"]

    def item(*inside):
        return ["output_item.added", *inside, "output_item.done"]

    thought = item(*(name.format("reasoning_text") for name in passage))
    text = item(*(name.format("output_text") for name in passage))
    arguments = item("function_call_arguments.delta", "function_call_arguments.done")
    assert without_repeats(kinds(events)) == [
        *("created", "in_progress"),
        *(*thought, *text, *arguments, *arguments),
        "completed",
    ]


def test_every_event_is_what_the_official_client_expects():
    events, _ = told(WHOLE)
    for event in events:
        known: type[BaseModel] = OFFICIAL[event["type"]]
        known.model_validate(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_each_event_names_the_item_that_it_is_about():
    events, response = told(WHOLE)
    for event in events:
        if "item_id" in event:
            assert response["output"][event["output_index"]]["id"] == event["item_id"]
    ids = [item["id"] for item in response["output"]]
    assert [name.partition("_")[0] for name in ids] == ["rs", "msg", "fc", "fc"]
    assert response["id"].startswith("resp_")


def test_the_response_is_the_sum_of_its_events():
    events, response = told(WHOLE)
    assert events[-1]["response"] == response
    assert [e["item"] for e in events if e["type"] == "response.output_item.done"] == response[
        "output"
    ]
    thought, message, weather, time = response["output"]
    assert thought["content"] == [{"type": "reasoning_text", "text": "I think."}]
    assert thought["summary"] == []
    assert message["content"][0]["text"] == "Two calls."
    assert json.loads(weather["arguments"]) == json.loads(AWKWARD)
    assert weather["arguments"] == AWKWARD
    assert (weather["call_id"], weather["name"]) == ("call_a", "weather")
    assert (time["call_id"], time["arguments"]) == ("call_b", "{}")
    assert {item["status"] for item in response["output"]} == {"completed"}
    pieces = [e["delta"] for e in events if e["type"].endswith("arguments.delta")]
    assert "".join(pieces) == AWKWARD + "{}"
    Response.model_validate(response)


def test_the_usage_has_this_apis_names():
    _, response = told(WHOLE)
    assert response["usage"] == {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 29,
    }


def test_a_response_under_way_holds_what_has_come_so_far():
    events = events_over()
    first, second = events.feed(START)
    assert first["response"]["status"] == second["response"]["status"] == "in_progress"
    assert first["response"]["output"] == []
    assert first["response"]["model"] == "tiny"
    events.feed(chunk(content="Hel"))
    assert events.response["output"][0]["content"][0]["text"] == "Hel"
    assert events.response["output"][0]["status"] == "in_progress"


@pytest.mark.parametrize(
    ("finish_reason", "told_reason"),
    [("length", "max_output_tokens"), ("content_filter", "content_filter")],
)
def test_an_answer_that_was_cut_is_incomplete(finish_reason, told_reason):
    events, response = told([START, chunk(content="Hel"), chunk(finish_reason), usage()])
    assert kinds(events)[-1] == "incomplete"
    OFFICIAL["response.incomplete"].model_validate(events[-1])
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": told_reason}
    assert response["completed_at"] is None
    assert response["output"][0]["status"] == "incomplete"
    assert response["usage"]["output_tokens"] == 9


def test_a_cut_call_is_incomplete_and_what_came_before_it_is_not():
    cut = [START, chunk(content="So:"), call(0, '{"to', id="a", name="x"), chunk("length")]
    _, response = told(cut)
    assert [item["status"] for item in response["output"]] == ["completed", "incomplete"]
    assert response["output"][1]["arguments"] == '{"to'


def test_an_error_in_the_middle_ends_it_as_failed():
    events = events_over()
    events.feed(START)
    events.feed(chunk(content="Hel"))
    error, failed = events.fail(EngineCrashed("The engine fell.", evidence="its words"))
    OFFICIAL["error"].model_validate(error)
    OFFICIAL["response.failed"].model_validate(failed)
    assert (error["type"], error["code"]) == ("error", "engine_crashed")
    assert error["error"]["evidence"] == "its words"
    response = failed["response"]
    assert response["status"] == "failed"
    assert response["error"]["code"] == "server_error"
    assert response["error"]["message"] == "The engine fell."
    assert response["output"][0]["status"] == "incomplete"
    assert response["output"][0]["content"][0]["text"] == "Hel"
    assert failed["sequence_number"] == error["sequence_number"] + 1


def test_an_error_before_the_first_word_still_begins_with_its_beginning():
    events = events_over(model="tiny").fail(QueueFull("Full."))
    assert kinds(events) == ["created", "in_progress", "error", "failed"]
    assert events[-1]["response"]["error"]["code"] == "rate_limit_exceeded"


def test_an_answer_without_a_reason_for_its_end_is_no_answer():
    events = events_over()
    events.feed(chunk(content="Hel"))
    with pytest.raises(EngineFault):
        events.end()


def test_a_call_that_had_ended_cannot_go_on():
    events = events_over()
    events.feed(call(0, "{}", id="a", name="x"))
    events.feed(call(1, "{}", id="b", name="y"))
    with pytest.raises(EngineFault):
        events.feed(call(0, "{}"))


def test_text_after_a_call_is_a_message_of_its_own():
    later = [chunk(content="A"), call(0, "{}", id="a", name="x"), chunk(content="B"), chunk("stop")]
    _, response = told(later)
    assert [item["type"] for item in response["output"]] == [
        "message",
        "function_call",
        "message",
    ]


def test_a_call_without_an_id_gets_one():
    _, response = told([call(0, "{}", name="x"), chunk("tool_calls")])
    assert response["output"][0]["call_id"].startswith("call_")


def test_an_answer_of_nothing_is_an_empty_message():
    events, response = told([START, chunk("stop"), usage()])
    assert response["output"][0]["content"][0]["text"] == ""
    assert "output_text.done" in kinds(events)


def test_logprobs_go_with_the_text_that_they_are_of():
    top = {"token": "é", "logprob": -0.5, "bytes": [195, 169]}
    piece = chunk(content="é")
    piece["choices"][0]["logprobs"] = {"content": [top | {"top_logprobs": [top]}]}
    piece["choices"][0]["logprobs"]["content"][0]["top_logprobs"].append(top)
    events, response = told([piece, piece, chunk("stop")], top_logprobs=1)
    [first, _] = [e for e in events if e["type"] == "response.output_text.delta"]
    assert first["logprobs"] == [top | {"top_logprobs": [top]}]
    assert len(response["output"][0]["content"][0]["logprobs"]) == 2
    Response.model_validate(response)


def test_what_was_asked_is_told_back():
    tool = {"type": "function", "name": "x"}
    _, response = told(
        [START, chunk("stop")],
        instructions="Be brief.",
        metadata={"a": "b"},
        temperature=0.5,
        tools=[tool],
        tool_choice={"type": "function", "name": "x"},
        parallel_tool_calls=False,
        text={"format": {"type": "json_object"}},
        store=True,
    )
    Response.model_validate(response)
    assert response["instructions"] == "Be brief."
    assert response["metadata"] == {"a": "b"}
    assert response["temperature"] == 0.5
    assert response["top_p"] is None
    assert response["tools"][0]["name"] == "x"
    assert response["tool_choice"] == {"type": "function", "name": "x"}
    assert response["parallel_tool_calls"] is False
    assert response["text"]["format"] == {"type": "json_object"}
    assert response["store"] is False
    assert told([START, chunk("stop")], tool_choice="none")[1]["tool_choice"] == "none"


def test_a_trace_that_was_asked_for_is_in_the_response():
    _, response = told([START, chunk("stop"), usage(trace={"request_id": "r"})])
    assert response["trace"] == {"request_id": "r"}


def test_the_official_types_were_found():
    assert len(OFFICIAL) > 40
    assert response_stream_event.ResponseCompletedEvent in OFFICIAL.values()
