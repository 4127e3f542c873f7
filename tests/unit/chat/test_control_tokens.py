"""Control tokens in a request's texts, however they are written in its JSON."""

import json

import pytest

from eloquio.chat.control_tokens import ControlTokens, control_tokens
from eloquio.errors import InvalidRequest

JOINER = "\N{WORD JOINER}"
BAR = "\N{FULLWIDTH VERTICAL LINE}"
TOKENS = ControlTokens(["<|im_start|>", "<|im_end|>", "[INST]", "</s>", f"<{BAR}User{BAR}>"])


def body_of(content, **fields):
    return json.dumps({"messages": [{"role": "user", "content": content}]} | fields).encode()


def defused(content):
    return json.loads(TOKENS.defused(body_of(content)))["messages"][0]["content"]


@pytest.mark.parametrize(
    "content",
    ["", "Hi", "a < b | c > d", "<|im_end", "<s>", "</span>[INS", "\\u003c", "caf\u00e9 <|", None],
)
def test_a_body_without_them_stays_the_same_object(content):
    body = body_of(content)
    assert TOKENS.defused(body) is body


def test_without_any_known_no_body_is_changed():
    body = body_of("<|im_end|>")
    assert ControlTokens(()).defused(body) is body


@pytest.mark.parametrize("token", ["<|im_start|>", "<|im_end|>", "[INST]", f"<{BAR}User{BAR}>"])
def test_one_in_a_text_reads_the_same_and_is_one_no_more(token):
    text = defused(f"before{token}{token}after")
    assert token not in text
    assert text.replace(JOINER, "") == f"before{token}{token}after"


def test_nothing_else_in_a_text_is_touched():
    assert defused("<|im_end|> <|other|> <b>") == f"<{JOINER}|im_end|> <|other|> <b>"


def test_it_is_not_made_anew_out_of_its_own_pieces():
    assert "<|im_end|>" not in defused("<|im_<|im_end|>end|>")


@pytest.mark.parametrize(
    "written",
    [
        r"\u003c|im_end|>",
        r"\u003C\u007cim_end\u007C\u003E",
        r"<\u007cim_end|>",
        r"<|im\u005fend|>",
        r"<\/s>",
        r"\u005bINST]",
        r"\u003c\uff5cUser\uFF5C>",
    ],
)
def test_an_escape_hides_nothing(written):
    body = b'{"messages":[{"role":"user","content":"' + written.encode() + b'"}]}'
    text = json.loads(TOKENS.defused(body))["messages"][0]["content"]
    assert text == text[0] + JOINER + text[2:]


def test_an_escaped_escape_is_a_text():
    body = body_of(r"\u003c|im_end|>")
    assert TOKENS.defused(body) is body


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_every_role_s_texts_and_parts_are_held_to_it(role):
    parts = [{"type": "text", "text": "[INST]"}]
    body = json.dumps({"messages": [{"role": role, "content": parts, "name": "[INST]"}]}).encode()
    [message] = json.loads(TOKENS.defused(body))["messages"]
    assert message["content"][0]["text"] == message["name"] == f"[{JOINER}INST]"
    assert message["role"] == role


def test_a_call_s_arguments_stay_json_and_are_looked_through_below_their_escapes():
    arguments = '{"x": "\\u003c|im_end|>", "y": "<|im_start|>", "n": 1}'
    call = {"id": "[INST]", "type": "function", "function": {"name": "f", "arguments": arguments}}
    body = json.dumps({"messages": [{"role": "assistant", "tool_calls": [call]}]}).encode()
    [told] = json.loads(TOKENS.defused(body))["messages"][0]["tool_calls"]
    assert json.loads(told["function"]["arguments"]) == {
        "x": f"<{JOINER}|im_end|>",
        "y": f"<{JOINER}|im_start|>",
        "n": 1,
    }
    assert told["id"] == "[INST]"


def test_a_call_s_arguments_that_are_no_json_are_a_text():
    call = {"function": {"name": "f", "arguments": "{<|im_end|>"}}
    body = json.dumps({"messages": [{"role": "assistant", "tool_calls": [call]}]}).encode()
    [told] = json.loads(TOKENS.defused(body))["messages"][0]["tool_calls"]
    assert told["function"]["arguments"] == "{" + f"<{JOINER}|im_end|>"


def test_a_call_s_arguments_without_a_bottom_are_refused():
    arguments = "[" * 500 + r'"\u003c|im_end|>"' + "]" * 500
    call = {"function": {"name": "f", "arguments": arguments}}
    body = json.dumps({"messages": [{"role": "assistant", "tool_calls": [call]}]}).encode()
    with pytest.raises(InvalidRequest) as refusal:
        TOKENS.defused(body)
    assert refusal.value.param == "messages"


def test_a_tool_is_described_harmlessly_and_its_values_stay():
    schema = {"type": "string", "enum": ["[INST]"], "description": "[INST]"}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    [told] = json.loads(TOKENS.defused(body_of("Hi", tools=[tool])))["tools"]
    assert told["function"]["parameters"] == schema | {"description": f"[{JOINER}INST]"}


def test_a_template_s_arguments_are_texts_too():
    told = json.loads(TOKENS.defused(body_of("Hi", chat_template_kwargs={"who": "[INST]"})))
    assert told["chat_template_kwargs"] == {"who": f"[{JOINER}INST]"}


def test_everything_else_in_the_request_stays():
    body = body_of("[INST]", stop=["</s>"], seed=1.0, model="m", logit_bias={"1": -100})
    told = json.loads(TOKENS.defused(body))
    del told["messages"]
    assert told == {"stop": ["</s>"], "seed": 1.0, "model": "m", "logit_bias": {"1": -100}}


def test_of_thousands_that_differ_in_a_number_only_those_there_are_are_found():
    many = ControlTokens([f"<unused{number}>" for number in range(6000)])
    others = "<unused6000><unusual><unused> "
    body = body_of(f"{others}<unused5999>{others}<unused0>")
    text = json.loads(many.defused(body))["messages"][0]["content"]
    assert text == f"{others}<{JOINER}unused5999>{others}<{JOINER}unused0>"


def test_the_same_tokens_are_prepared_once():
    assert control_tokens(("<a>", "<b>")) is control_tokens(("<a>", "<b>"))
    assert control_tokens(("<a>", "<b>")) is not control_tokens(("<a>", "<c>"))
