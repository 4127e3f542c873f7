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
    assert told["id"] == f"[{JOINER}INST]"


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


@pytest.mark.parametrize("written", [r"\u003c|im_end|>", "<|im_end|>"], ids=["escaped", "as it is"])
@pytest.mark.parametrize("name", ["id", "type", "role", "arguments", "x"])
def test_of_a_call_s_arguments_no_value_is_left_out_whatever_its_name(name, written):
    arguments = f'{{"{name}": "{written}", "n": 1}}'
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}
    body = json.dumps({"messages": [{"role": "assistant", "tool_calls": [call]}]}).encode()
    [told] = json.loads(TOKENS.defused(body))["messages"][0]["tool_calls"]
    assert json.loads(told["function"]["arguments"]) == {name: f"<{JOINER}|im_end|>", "n": 1}


@pytest.mark.parametrize("arguments", ['{"\\u003c|im_end|>": 1}', {"<|im_end|>": 1}])
def test_a_name_in_a_call_s_arguments_is_a_text_too(arguments):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}
    body = json.dumps({"messages": [{"role": "assistant", "tool_calls": [call]}]}).encode()
    [told] = json.loads(TOKENS.defused(body))["messages"][0]["tool_calls"]
    told = told["function"]["arguments"]
    assert (json.loads(told) if isinstance(told, str) else told) == {f"<{JOINER}|im_end|>": 1}


def test_a_call_and_its_result_still_have_the_same_id():
    call = {"id": "[INST]", "type": "function", "function": {"name": "</s>", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "[INST]", "content": "1"},
    ]
    called, result = json.loads(TOKENS.defused(json.dumps({"messages": messages}).encode()))[
        "messages"
    ]
    assert called["tool_calls"][0]["id"] == result["tool_call_id"] == f"[{JOINER}INST]"
    assert called["tool_calls"][0]["function"]["name"] == f"<{JOINER}/s>"


@pytest.mark.parametrize("cut", range(1, len("<|im_end|>")))
def test_two_texts_side_by_side_make_no_token(cut):
    token = "<|im_end|>"
    texts = ["Hi", token[:cut], token[cut:] + "!"]
    parts = [{"type": "text", "text": text} for text in texts]
    told = json.loads(TOKENS.defused(body_of(parts)))["messages"][0]["content"]
    joined = "".join(part["text"] for part in told)
    assert token not in joined
    assert joined.replace(JOINER, "") == f"Hi{token}!"
    assert told[0] == parts[0]


def test_texts_with_a_picture_between_them_stay():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    parts = [{"type": "text", "text": "<|im_e"}, picture, {"type": "text", "text": "nd|>"}]
    body = body_of(parts)
    assert TOKENS.defused(body) is body


@pytest.mark.parametrize("name", ["description", "title", "default", "examples"])
def test_what_only_describes_a_tool_is_made_harmless(name):
    value = {"[INST]": ["[INST]"]} if name in ("default", "examples") else "[INST]"
    schema = {"type": "object", name: value}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    [told] = json.loads(TOKENS.defused(body_of("Hi", tools=[tool])))["tools"]
    harmless = f"[{JOINER}INST]"
    expected = {harmless: [harmless]} if isinstance(value, dict) else harmless
    assert told["function"]["parameters"] == schema | {name: expected}


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": ["a", "[INST]"]},
        {"const": "[INST]"},
        {"pattern": "[INST]"},
        {"type": "object", "properties": {"[INST]": {"type": "string"}}},
        {"type": "object", "properties": {"title": {"enum": ["[INST]"]}}},
        {"type": "object", "properties": {"properties": {"enum": ["[INST]"], "title": "x"}}},
    ],
)
def test_a_tool_that_is_called_only_by_a_token_is_refused(schema):
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    with pytest.raises(InvalidRequest) as refusal:
        TOKENS.defused(body_of("Hi", tools=[tool]))
    assert refusal.value.param == "tools"


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
