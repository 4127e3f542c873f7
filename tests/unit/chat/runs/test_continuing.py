"""The request that puts a model back into its answer."""

import json

import pytest

from eloquio.chat.fold import Message
from eloquio.chat.runs.continuing import continued
from eloquio.errors import RunCannotContinue

USER = {"role": "user", "content": "Hello"}


def asked(*messages, **fields):
    return json.dumps({"messages": list(messages) or [USER], "max_tokens": 9} | fields).encode()


def test_the_text_so_far_stands_at_the_end_as_the_assistants():
    body = json.loads(continued(asked(), Message("Once upon", finish_reason="length")))
    assert body["messages"] == [USER, {"role": "assistant", "content": "Once upon"}]
    assert body["max_tokens"] == 9
    assert body["continue_final_message"] is True
    assert body["add_generation_prompt"] is False
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_an_answer_that_had_not_begun_is_asked_for_anew():
    assert continued(asked(), Message()) == asked()


@pytest.mark.parametrize("content", ["Once ", [{"type": "text", "text": "Once "}]])
def test_an_answer_that_the_request_began_stays_one_message(content):
    body = continued(asked(USER, {"role": "assistant", "content": content}), Message("upon"))
    assert json.loads(body)["messages"] == [USER, {"role": "assistant", "content": "Once upon"}]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, Message("All.", finish_reason="stop")),
        ({}, Message(reasoning_content="hm")),
        ({}, Message("I ask", tool_calls=[{"id": "a"}])),
        ({}, Message(tool_calls=[{"id": "a"}], finish_reason="tool_calls")),
        ({"response_format": {"type": "json_object"}}, Message('{"a":')),
        ({"grammar": 'root ::= "a"'}, Message("a")),
    ],
)
def test_what_cannot_be_put_back_is_refused(fields, message):
    with pytest.raises(RunCannotContinue):
        continued(asked(**fields), message)


def test_a_format_that_is_none_is_no_hindrance():
    assert continued(asked(response_format={"type": "text"}), Message("a"))
