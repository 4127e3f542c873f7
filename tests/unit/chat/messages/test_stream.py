"""Chunks, made the events of a message, and the message that they tell."""

import json

import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message

from eloquio.chat.messages.reply import message_of
from eloquio.chat.messages.stream import SIGNATURE, MessageEvents
from eloquio.errors import EngineFault

ARGUMENTS = [
    {"text": 'a } and a { and "quotes"\nand a line', "emoji": "👨‍👩‍👧🌍"},
    {},
    {"nested": {"list": [1, "}", None]}},
]


def chunk(reason=None, tokens=None, **delta):
    made = {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    if tokens is not None:
        made["timings"] = {"prompt_n": 7, "cache_n": 3, "predicted_n": tokens}
    return made


def call(index, arguments, identity=None, name=None):
    head = {"id": identity, "type": "function"} if identity else {}
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return chunk(tool_calls=[{"index": index, **head, "function": function}])


def calls(index, arguments, size=3):
    """A call as engines tell it: its name once, and its arguments in pieces."""
    text = json.dumps(arguments, ensure_ascii=False)
    yield call(index, "", f"id{index}", f"tool{index}")
    for begin in range(0, len(text), size):
        yield call(index, text[begin : begin + size])


ROLE = chunk(role="assistant", content=None)
USAGE = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 21}}


def events_of(chunks, max_tokens=100, **how):
    events = MessageEvents(max_tokens=max_tokens, **how)
    told = [event for chunk in chunks for event in events.feed(chunk)]
    return told + events.end()


def as_the_client_folds(told):
    message, inputs = None, {}
    for event in told:
        if event["type"] != "ping":
            message = accumulate_event(event=event, current_snapshot=message, json_bufs=inputs)
    return message


def test_thinking_text_and_parallel_calls_are_blocks_one_after_the_other():
    chunks = [ROLE, chunk(reasoning_content="Let me "), chunk(reasoning_content="see.")]
    chunks += [chunk(content="I'll "), chunk(content="look. 🌍")]
    chunks += [piece for index, made in enumerate(ARGUMENTS) for piece in calls(index, made)]
    told = events_of([*chunks, chunk("tool_calls"), USAGE])

    outline = [(event["type"], event.get("index")) for event in told]
    assert outline[:3] == [
        ("message_start", None),
        ("ping", None),
        ("content_block_start", 0),
    ]
    assert outline[-2:] == [("message_delta", None), ("message_stop", None)]
    blocks = outline[2:-2]
    assert blocks == sorted(blocks, key=lambda step: step[1]), "no block is gone back to"
    for index in range(5):
        steps = [kind for kind, of in blocks if of == index]
        assert steps[0] == "content_block_start"
        assert steps[-1] == "content_block_stop"
        assert set(steps[1:-1]) <= {"content_block_delta"}

    message = message_of(told)
    assert message["content"][:2] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": SIGNATURE},
        {"type": "text", "text": "I'll look. 🌍"},
    ]
    assert message["content"][2:] == [
        {"type": "tool_use", "id": f"toolu_id{index}", "name": f"tool{index}", "input": made}
        for index, made in enumerate(ARGUMENTS)
    ]
    assert message["stop_reason"] == "tool_use"
    assert message["usage"]["input_tokens"] == 10
    assert message["usage"]["output_tokens"] == 21


@pytest.mark.parametrize(
    "chunks",
    [
        [ROLE, chunk("stop"), USAGE],
        [ROLE, chunk(content="Hello"), chunk("stop"), USAGE],
        [ROLE, chunk(reasoning_content="Hm"), chunk(content="Yes"), chunk("stop"), USAGE],
        [ROLE, chunk(content="So:"), *calls(0, ARGUMENTS[0], 1), chunk("tool_calls"), USAGE],
        [ROLE, *list(calls(0, ARGUMENTS[0], 5))[:4], chunk("length"), USAGE],
        [ROLE, chunk(content="a"), chunk(reasoning_content="b"), chunk(content="c"), chunk("stop")],
    ],
)
def test_the_official_client_folds_the_events_to_the_message_that_is_not_streamed(chunks):
    told = events_of(chunks)
    message = message_of(told)
    assert as_the_client_folds(told).to_dict() == message
    assert Message.model_validate(message).role == "assistant"


@pytest.mark.parametrize(
    ("reason", "output", "expected"),
    [
        ("stop", 5, "end_turn"),
        ("length", 100, "max_tokens"),
        ("length", 0, "max_tokens"),
        ("length", 60, "model_context_window_exceeded"),
        ("content_filter", 5, "refusal"),
    ],
)
def test_a_message_says_why_it_ended(reason, output, expected):
    usage = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": output}}
    message = message_of(events_of([chunk(content="Hi"), chunk(reason), usage]))
    assert (message["stop_reason"], message["stop_sequence"]) == (expected, None)


@pytest.mark.parametrize("cut", range(len("Paris.\n\nMore") + 1))
def test_a_stop_sequence_ends_the_message_before_it(cut):
    text = "Paris.\n\nMore"
    events = MessageEvents(max_tokens=100, stops=["\n\n"])
    told = events.feed(ROLE)
    told += events.feed(chunk(content=text[:cut], tokens=3))
    told += events.feed(chunk(content=text[cut:], tokens=5))
    assert events.is_over
    assert events.feed(chunk(content="and more", tokens=9)) == []
    message = message_of(told + events.end())
    assert message["content"] == [{"type": "text", "text": "Paris."}]
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", "\n\n")
    assert message["usage"]["input_tokens"] == 10
    assert message["usage"]["output_tokens"] == (3 if cut >= len("Paris.\n\n") else 5)


def test_a_stop_sequence_counts_in_text_only():
    chunks = [chunk(reasoning_content="one. two"), *calls(0, {"x": "a.b"}), chunk("tool_calls")]
    message = message_of(events_of(chunks, stops=["."]))
    assert message["content"][0]["thinking"] == "one. two"
    assert message["content"][1]["input"] == {"x": "a.b"}
    assert message["stop_reason"] == "tool_use"


@pytest.mark.parametrize(
    "after",
    [[chunk(reasoning_content="hm")], list(calls(0, {"x": 1})), []],
)
def test_text_that_only_seemed_to_begin_a_stop_sequence_keeps_its_place(after):
    first = [chunk(reasoning_content="Well"), chunk(content="a <")]
    message = message_of(events_of([*first, *after, chunk("stop")], stops=["</end>"]))
    assert message["content"][1] == {"type": "text", "text": "a <"}


def test_the_prompt_is_counted_from_the_first_event_on():
    events = MessageEvents(max_tokens=100)
    assert events.feed(ROLE) == []
    [start, *_] = events.feed(chunk(content="Hi", tokens=1))
    assert start["message"]["usage"]["input_tokens"] == 10
    assert start["message"]["usage"]["output_tokens"] == 1
    assert start["message"]["id"].startswith("msg_")
    assert start["message"]["model"] == "m"


def test_thinking_that_is_to_be_left_out_leaves_its_empty_block():
    chunks = [chunk(reasoning_content="secret"), chunk(content="Yes"), chunk("stop")]
    told = events_of(chunks, tells_thinking=False)
    assert "secret" not in json.dumps(told)
    assert message_of(told)["content"][0] == {
        "type": "thinking",
        "thinking": "",
        "signature": SIGNATURE,
    }


def test_an_engine_that_goes_back_to_an_ended_call_is_at_fault():
    chunks = [*calls(0, {"x": 1}), *calls(1, {}), call(0, "more")]
    with pytest.raises(EngineFault, match="went back"):
        events_of(chunks)


def test_an_end_without_a_reason_is_the_engines_fault():
    with pytest.raises(EngineFault, match="without saying why"):
        events_of([ROLE, chunk(content="Hi")])


@pytest.mark.parametrize("arguments", ["no json", "[1]", "7"])
def test_a_call_with_what_is_no_object_is_a_fault(arguments):
    with pytest.raises(EngineFault, match="no JSON object"):
        message_of(events_of([call(0, arguments, "id", "tool"), chunk("tool_calls")]))


def test_ids_of_calls_hold_only_what_clients_may_send_back():
    [begin] = [
        event
        for event in events_of([call(0, "{}", "call:1/2-a_b", "tool"), chunk("tool_calls")])
        if event["type"] == "content_block_start"
    ]
    assert begin["content_block"]["id"] == "toolu_call12-a_b"
