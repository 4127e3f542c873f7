"""What a chat request may hold, and by which name the rest is refused."""

import pytest
from pydantic import ValidationError

from eloquio.chat.schema import ChatRequest
from eloquio.errors import EloquioError, InvalidRequest, NotImplementedHere
from fixtures.calling import MESSAGES, TOOLS

USER = {"role": "user", "content": "Hi"}
BETA = {"type": "function", "function": {"name": "beta"}}


def request(**fields):
    return ChatRequest.model_validate({"messages": [USER]} | fields)


def refused(**fields):
    """The field's name as it is told, and why."""
    try:
        request(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        return ".".join(str(part) for part in first["loc"]), first["msg"]
    except EloquioError as error:
        return error.param, error.message
    return None


def nested(levels):
    value = "bottom"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": MESSAGES, "tools": TOOLS, "tool_choice": BETA, "parallel_tool_calls": False},
        {"messages": [{"role": "assistant"}, USER]},
        {"messages": [{"role": "assistant", "content": ""}, USER]},
        {"messages": [{"role": "developer", "content": [{"type": "text", "text": "Hi"}]}]},
        {"messages": [{"role": "tool", "tool_call_id": "a", "content": "1"}]},
        {"messages": [{"role": "user", "content": "\N{WAVING HAND SIGN}"}]},
        {"stop": "x"},
        {"stop": ["x"] * 16},
        {"logit_bias": {"15": -100, "16": 2.5}},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
        {"logprobs": True, "top_logprobs": 20},
        {"stream": True, "stream_options": {"include_usage": True}},
        {"temperature": 0, "top_p": 0, "min_p": 1, "top_k": -1, "seed": -1, "n": 1},
        {"seed": 7.0, "max_tokens": 5, "max_completion_tokens": 5},
        {"tool_choice": "none"},
        {"reasoning_effort": "minimal", "verbosity": "medium", "modalities": ["text"]},
        {"store": False, "service_tier": "auto", "user": "me", "metadata": {"a": "b"}},
        {"audio": None, "functions": None, "stop": None, "tools": None, "stream": None},
        {"unknown": {"deep": [1, "x", None, True]}},
        {"unknown": nested(99)},
    ],
)
def test_what_is_right_is_taken(fields):
    assert refused(**fields) is None


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([], "messages"),
        ("Hi", "messages"),
        ([{"content": "Hi"}], "messages.0.role"),
        ([{"role": "robot", "content": "Hi"}], "messages.0.role"),
        ([USER, {"role": "user"}], "messages.1"),
        ([{"role": "system", "content": None}], "messages.0"),
        ([{"role": "tool", "content": "1"}], "messages.0"),
        ([{"role": "user", "content": 5}], "messages.0.content"),
        ([{"role": "user", "content": []}], "messages.0.content"),
        ([{"role": "user", "content": ["Hi"]}], "messages.0.content"),
        ([{"role": "user", "content": [{"text": "Hi"}]}], "messages.0.content"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages.0.content"),
        ([{"role": "assistant", "tool_calls": [{}]}], "messages.0.tool_calls.0.function"),
    ],
)
def test_messages_that_are_none_are_refused(messages, param):
    assert refused(messages=messages)[0] == param


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stop", 3),
        ("stop", ""),
        ("stop", ["x", ""]),
        ("stop", ["x"] * 17),
        ("logit_bias", [15]),
        ("logit_bias", {"word": 1}),
        ("logit_bias", {"15": 101}),
        ("logit_bias", {"15": False}),
        ("response_format", "json"),
        ("response_format", {"type": "yaml"}),
        ("response_format", {"type": "json_schema"}),
        ("response_format", {"type": "json_schema", "json_schema": {"name": "a"}}),
        ("response_format", {"type": "json_schema", "json_schema": {"schema": "a"}}),
        ("top_logprobs", 5),
        ("top_logprobs", "5"),
        ("stream_options", {"include_usage": True}),
        ("temperature", -1),
        ("temperature", 2.1),
        ("temperature", "1"),
        ("temperature", True),
        ("top_p", 7),
        ("top_p", -0.1),
        ("min_p", 1.5),
        ("top_k", -2),
        ("max_tokens", 0),
        ("max_tokens", 1.5),
        ("max_completion_tokens", 0),
        ("frequency_penalty", 2.5),
        ("presence_penalty", -2.5),
        ("repetition_penalty", 0),
        ("n", 0),
        ("n", 129),
        ("n", True),
        ("seed", "7"),
        ("seed", 2**63),
        ("stream", "yes"),
        ("logprobs", 1),
        ("tools", "alpha"),
        ("tools", [{"type": "function"}]),
        ("tools", [{"type": "function", "function": {"name": "two words"}}]),
        ("tools", [{"type": "function", "function": {"name": "a" * 65}}]),
        ("tools", [{"type": "function", "function": {"name": "a", "parameters": []}}]),
        ("tool_choice", "auto"),
        ("tool_choice", "any"),
        ("tool_choice", BETA),
        ("parallel_tool_calls", "no"),
        ("reasoning_effort", "huge"),
        ("use_adapter", 3),
        ("reasoning_format", "x"),
        ("chat_template_kwargs", "x"),
        ("tools", [TOOLS[0]] * 513),
        ("cancel_id", ""),
        ("cancel_id", "a" * 129),
        ("functions", []),
        ("function_call", "auto"),
    ],
)
def test_a_field_that_is_wrong_is_refused_by_its_name(name, value):
    param, message = refused(**{name: value})
    assert param.split(".")[0] == name
    assert message.rstrip(".")


@pytest.mark.parametrize(
    "fields",
    [
        {"stream": True, "stream_options": True},
        {"stream": True, "stream_options": {"include_usage": "yes"}},
        {"logprobs": True, "top_logprobs": 21},
        {"logprobs": False, "top_logprobs": 0},
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "gamma"}}},
        {"max_tokens": 5, "max_completion_tokens": 6},
        {"tools": TOOLS, "tool_choice": "required", "reasoning_format": "none"},
    ],
)
def test_fields_that_do_not_fit_together_are_refused(fields):
    assert refused(**fields)[0].split(".")[0] in fields


@pytest.mark.parametrize(
    "fields",
    [
        {"audio": {"voice": "alloy", "format": "wav"}},
        {"modalities": ["text", "audio"]},
        {"web_search_options": {}},
        {"store": True},
        {"service_tier": "flex"},
        {"verbosity": "low"},
        {"tools": [{"type": "custom", "custom": {"name": "a"}}]},
        {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": {}}},
        {"logprobs": True, "tools": TOOLS},
    ],
)
def test_what_no_local_model_can_do_is_refused_and_never_ignored(fields):
    with pytest.raises(NotImplementedHere) as refusal:
        request(**fields)
    assert refusal.value.param in fields


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "messages"),
        ({"messages": [{"role": "user", "content": "Hi", "name": "\udfff"}]}, "messages"),
        ({"unknown": {"\ud800": 1}}, "unknown"),
        ({"unknown": [float("nan")]}, "unknown"),
        ({"temperature": float("inf")}, "temperature"),
        ({"unknown": 10**400}, "unknown"),
        ({"\ud800": 1}, None),
        ({"unknown": nested(101)}, "unknown"),
    ],
)
def test_what_json_cannot_carry_is_refused(fields, param):
    with pytest.raises(InvalidRequest) as refusal:
        request(**fields)
    assert refusal.value.param == param


CALL = {"id": "a", "type": "function", "function": {"name": "alpha", "arguments": "{}"}}


@pytest.mark.parametrize(
    "messages",
    [
        ["not even a message"] * 4097,
        [USER] * 4097,
        [USER, {"role": "assistant", "tool_calls": [CALL] * 4095}],
    ],
)
def test_more_messages_and_calls_than_a_template_can_take_are_refused(messages):
    with pytest.raises(InvalidRequest, match="4097 messages and calls") as refusal:
        request(messages=messages)
    assert refusal.value.param == "messages"


def test_as_many_as_it_can_take_are_taken():
    request(messages=[USER] * 4096)
    request(messages=[USER, {"role": "assistant", "tool_calls": [CALL] * 4094}])


def test_probabilities_beside_tools_that_may_not_be_called_are_taken():
    request(logprobs=True, tools=TOOLS, tool_choice="none")


@pytest.mark.parametrize("name", ["audio", "store", "verbosity", "web_search_options"])
def test_what_is_refused_says_why_and_what_to_do(name):
    with pytest.raises(NotImplementedHere) as refusal:
        request(**{name: "high"})
    assert refusal.value.message.startswith(f"{name} isn't supported. ")
    assert name in refusal.value.next_step


def test_a_picture_is_not_copied():
    parts = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    [message] = request(messages=[{"role": "user", "content": parts}]).messages
    assert message.content is parts


@pytest.mark.parametrize(
    "fields",
    [
        {"grammar": "(" * 5000},
        {"messages": [{"role": "assistant", "content": "", "tool_calls": [
            {"id": "1", "function": {"name": "a", "arguments": "[" * 5000}}]}]},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {
            "pattern": "(" * 5000 + ")" * 5000}}}},
    ],
)  # fmt: skip
def test_a_text_that_would_end_the_engines_parser_is_refused(fields):
    with pytest.raises(InvalidRequest, match="levels deep"):
        ChatRequest.model_validate({"messages": [{"role": "user", "content": "Hi"}]} | fields)


def test_many_brackets_side_by_side_are_fine():
    fields = {"grammar": "()" * 5000, "messages": [{"role": "user", "content": "(" * 5000}]}
    ChatRequest.model_validate(fields)


@pytest.mark.parametrize("limit", [2**31, 2**32 + 1, 2**63])
def test_a_limit_that_the_engine_would_take_for_another_is_refused(limit):
    with pytest.raises(ValueError, match="less than"):
        ChatRequest.model_validate(
            {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": limit}
        )
