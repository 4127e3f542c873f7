"""What is mended in a request that is right, and what stays as it came."""

import copy

import pytest

from eloquio.chat import mends
from eloquio.chat.completions.schema import CompletionRequest
from eloquio.chat.forced_calls import response_format
from eloquio.chat.schema import ChatRequest
from fixtures.calling import TOOLS

USER = {"role": "user", "content": "Hi"}


def mended(**fields):
    """The fields that come out other than they went in; a mend that is due has to be known."""
    request = {"messages": [USER]} | fields
    before = copy.deepcopy(request)
    after = mends.mended(request)
    assert request == before
    assert mends.are_needed(ChatRequest.model_validate(request)) == (after != before)
    names = before.keys() | after.keys()
    return {name: after.get(name) for name in names if after.get(name) != before.get(name)}


def test_a_plain_chat_needs_no_mend():
    assert mended() == {}
    assert mended(tools=TOOLS, tool_choice="auto", parallel_tool_calls=False) == {}
    assert mended(response_format={"type": "text"}, stream=True, reasoning_effort="low") == {}


def test_a_repetition_penalty_gets_the_engines_name():
    assert mended(repetition_penalty=1.3) == {"repetition_penalty": None, "repeat_penalty": 1.3}


def test_the_engines_own_name_wins_over_ours():
    assert mended(repetition_penalty=1.3, repeat_penalty=1.1) == {"repetition_penalty": None}


@pytest.mark.parametrize(
    ("fields", "becomes"),
    [
        ({"logprobs": 0}, {"logprobs": 1}),
        ({"repetition_penalty": 1.3}, {"repeat_penalty": 1.3}),
        ({"echo": True, "seed": 1}, {"seed": 1}),
    ],
)
def test_a_completion_is_mended_as_a_chat_is(fields, becomes):
    assert completion_needs_mending(fields)
    assert mends.mended_completion({"prompt": "Once"} | fields) == {"prompt": "Once"} | becomes


@pytest.mark.parametrize("fields", [{}, {"seed": 1, "logprobs": 3}, {"logprobs": None}])
def test_a_plain_completion_needs_no_mend(fields):
    assert not completion_needs_mending(fields)
    assert mends.mended_completion({"prompt": "Once"} | fields) == {"prompt": "Once"} | fields


def completion_needs_mending(fields):
    request = CompletionRequest.model_validate({"prompt": "Once"} | fields)
    return mends.completion_needs_them(request)


@pytest.mark.parametrize("thinks", [True, False])
def test_thinking_is_an_argument_of_the_template(thinks):
    changed = mended(enable_thinking=thinks)
    assert changed["chat_template_kwargs"] == {"enable_thinking": thinks}


def test_an_argument_of_the_template_that_was_given_wins():
    given = {"enable_thinking": False, "documents": []}
    assert mended(enable_thinking=True, chat_template_kwargs=given) == {"enable_thinking": None}


def test_any_json_object_is_described_by_a_schema():
    changed = mended(response_format={"type": "json_object"})
    assert changed["response_format"]["type"] == "json_schema"
    assert changed["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_a_schema_beside_json_object_is_kept():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    changed = mended(response_format={"type": "json_object", "schema": schema})
    assert changed["response_format"]["json_schema"]["schema"] == schema


def test_of_the_tools_the_chosen_one_is_left_and_required():
    choice = {"type": "function", "function": {"name": "beta"}}
    changed = mended(tools=TOOLS, tool_choice=choice)
    assert changed.pop("response_format") == response_format(TOOLS[1:], is_one=True)
    assert changed == {
        "tools": TOOLS[1:],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }


@pytest.mark.parametrize("is_one", [True, False])
def test_a_required_call_is_described_by_a_schema(is_one):
    changed = mended(tools=TOOLS, tool_choice="required", parallel_tool_calls=not is_one)
    assert changed == {"response_format": response_format(TOOLS, is_one=is_one)}


def test_tools_that_may_not_be_called_are_left_out():
    assert mended(tools=TOOLS, tool_choice="none") == {"tools": None, "tool_choice": None}


def test_the_chosen_tokens_probability_is_asked_for_without_alternatives_too():
    for fields in ({"logprobs": True}, {"logprobs": True, "top_logprobs": 0}):
        assert mended(**fields) == {"top_logprobs": 1, "n_probs": 1}
    assert mended(logprobs=True, top_logprobs=3) == {}


@pytest.mark.parametrize(
    ("reply", "content"),
    [
        ({}, ""),
        ({"reasoning_content": "Hm."}, ""),
        ({"refusal": "No."}, "No."),
        (
            {"content": [{"type": "refusal", "refusal": "No."}]},
            [{"type": "text", "text": "No."}],
        ),
    ],
)
def test_a_reply_without_a_text_gets_one(reply, content):
    message = {"role": "assistant"} | reply
    changed = mended(messages=[USER, message, USER])
    assert changed["messages"] == [USER, message | {"content": content}, USER]


@pytest.mark.parametrize(
    "reply",
    [
        {"content": ""},
        {"content": "Hello."},
        {"content": [{"type": "text", "text": "Hello."}]},
        {"tool_calls": [{"function": {"name": "alpha", "arguments": "{}"}}]},
    ],
)
def test_any_other_reply_stays_as_it_came(reply):
    assert mended(messages=[USER, {"role": "assistant"} | reply, USER]) == {}
