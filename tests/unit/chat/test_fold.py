"""Chunks, folded into the message they make."""

import json

import pytest

from eloquio.chat.fold import Message, fold, only_names_the_role


def chunk(reason=None, usage=None, **delta):
    made = {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    return json.dumps(made | ({"usage": usage} if usage else {})).encode()


def call(index, identity=None, name=None, arguments=None):
    function = {"name": name, "arguments": arguments}
    return {
        "index": index,
        **({"id": identity, "type": "function"} if identity else {}),
        "function": {key: value for key, value in function.items() if value is not None},
    }


def made_call(identity, name, arguments):
    function = {"name": name, "arguments": arguments}
    return {"id": identity, "type": "function", "function": function}


ROLE = chunk(role="assistant", content=None)
USAGE = json.dumps({"choices": [], "usage": {"total_tokens": 3}}).encode()


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([], Message()),
        ([ROLE], Message()),
        ([ROLE, chunk(content="Hé"), chunk(content="llo")], Message("Héllo")),
        (
            [chunk(content="Hi"), chunk("stop"), USAGE],
            Message("Hi", finish_reason="stop", usage={"total_tokens": 3}),
        ),
        (
            [chunk(reasoning_content="hm"), chunk(reasoning_content="m"), chunk(content="Yes")],
            Message("Yes", "hmm"),
        ),
        (
            [
                chunk(tool_calls=[call(0, "a", "first", "")]),
                chunk(tool_calls=[call(0, arguments='{"x":')]),
                chunk(tool_calls=[call(1, "b", "second", "{}")]),
                chunk(tool_calls=[call(0, arguments=' "}"}')]),
                chunk("tool_calls"),
            ],
            Message(
                tool_calls=[
                    made_call("a", "first", '{"x": "}"}'),
                    made_call("b", "second", "{}"),
                ],
                finish_reason="tool_calls",
            ),
        ),
        # Continued after it had been cut: the end in the middle is no longer its end.
        (
            [chunk(content="a"), chunk("length"), USAGE, chunk(content="b")],
            Message("ab"),
        ),
        (
            [chunk(content="a"), chunk("length"), USAGE, chunk(content="b"), chunk("stop")],
            Message("ab", finish_reason="stop"),
        ),
        ([b"no json", b"[1]", b"{}", b'{"choices":[7]}', chunk(content="a")], Message("a")),
        ([b'{"choices":[{"delta":null}]}', b"\xff"], Message()),
    ],
)
def test_chunks_make_a_message(events, message):
    assert fold(events) == message


@pytest.mark.parametrize(
    ("event", "does"),
    [
        (ROLE, True),
        (chunk(role="assistant", content=""), True),
        (chunk(role="assistant", content="Hi"), False),
        (chunk(content="Hi"), False),
        (chunk("stop", role="assistant"), False),
        (USAGE, False),
        (b"no json", False),
    ],
)
def test_the_chunk_that_begins_a_message_is_known(event, does):
    assert only_names_the_role(event) is does
