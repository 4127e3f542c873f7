"""A request for a response becomes the chat completion that it means, or is refused by name."""

import pytest
from pydantic import ValidationError

from eloquio.chat import mends
from eloquio.chat.responses.request import NAMES, chat_body, input_body
from eloquio.chat.responses.schema import InputTokensRequest, ResponseRequest
from eloquio.chat.translated import named_as, parsed
from eloquio.errors import EloquioError, InvalidRequest, ModelCannotSee, NotImplementedHere

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "Tells the weather.",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}},
    "strict": True,
}
TIME = {"type": "function", "name": "time"}
CHOOSE_X = {"type": "function", "name": "x"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": ""}
CUT_CALL = {"type": "function_call", "call_id": "a", "name": "x", "arguments": '{"to'}
PICTURE = "data:image/png;base64,aGk="


def of_parts(*parts):
    return {"input": [{"role": "user", "content": list(parts)}]}


def body_of(**fields):
    return chat_body(ResponseRequest.model_validate({"input": "Hi"} | fields))


def messages_of(*items, **fields):
    return body_of(input=list(items), **fields)["messages"]


def refusal_of(**fields):
    with pytest.raises(EloquioError) as refusal:
        body_of(**fields)
    return refusal.value


def test_a_text_is_one_message_of_the_users():
    assert body_of() == {"messages": [{"role": "user", "content": "Hi"}]}


def test_instructions_come_before_everything_else():
    [first, second] = messages_of({"role": "user", "content": "Hi"}, instructions="Be brief.")
    assert first == {"role": "system", "content": "Be brief."}
    assert second["role"] == "user"


def test_the_developers_word_is_the_systems():
    [message] = messages_of({"type": "message", "role": "developer", "content": "Be brief."})
    assert message == {"role": "system", "content": "Be brief."}


def test_texts_and_pictures_keep_their_order():
    parts = [
        {"type": "input_text", "text": "one"},
        {"type": "input_image", "image_url": PICTURE, "detail": "low"},
        {"type": "input_text", "text": "two"},
    ]
    [message] = messages_of({"role": "user", "content": parts})
    assert message["content"] == [
        {"type": "text", "text": "one"},
        {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}},
        {"type": "text", "text": "two"},
    ]


def test_reasoning_text_and_calls_are_one_message_of_the_assistants():
    messages = messages_of(
        {"role": "user", "content": "Weather?"},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "I look it up."}],
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "A moment.", "annotations": []}],
        },
        {"type": "function_call", "call_id": "a", "name": "weather", "arguments": '{"x": "}"}'},
        {"type": "function_call", "call_id": "b", "name": "time", "arguments": ""},
        {"type": "function_call_output", "call_id": "a", "output": "Rain"},
        {
            "type": "function_call_output",
            "call_id": "b",
            "output": [{"type": "input_text", "text": "Noon"}],
        },
    )
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool"]
    said = messages[1]
    assert said["reasoning_content"] == "I look it up."
    assert said["content"] == "A moment."
    assert [call["id"] for call in said["tool_calls"]] == ["a", "b"]
    assert said["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"x": "}"}'}
    assert said["tool_calls"][1]["function"]["arguments"] == "{}"
    assert messages[2:] == [
        {"role": "tool", "tool_call_id": "a", "content": "Rain"},
        {"role": "tool", "tool_call_id": "b", "content": "Noon"},
    ]


def test_what_comes_out_of_order_begins_a_new_message():
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
    said = {"role": "assistant", "content": "Yes."}
    messages = messages_of(said, thought, said, said)
    assert [message.get("reasoning_content") for message in messages] == [None, "Hm.", None]
    assert [message["content"] for message in messages] == ["Yes.", "Yes.", "Yes."]


def test_a_refusal_is_what_the_assistant_said():
    part = {"type": "refusal", "refusal": "No."}
    assert messages_of({"role": "assistant", "content": [part]})[0]["content"] == "No."


def test_fields_get_the_names_that_a_chat_has_for_them():
    body = body_of(
        model="tiny",
        max_output_tokens=7,
        temperature=0,
        top_p=0.5,
        reasoning={"effort": "low", "summary": "auto"},
        top_logprobs=2,
    )
    del body["messages"]
    assert body == {
        "model": "tiny",
        "max_tokens": 7,
        "temperature": 0,
        "top_p": 0.5,
        "reasoning_effort": "low",
        "logprobs": True,
        "top_logprobs": 2,
    }


def test_logprobs_can_be_asked_for_by_include_alone():
    body = body_of(include=["message.output_text.logprobs"])
    assert body["logprobs"] is True
    assert mends.are_needed(parsed(body, NAMES))
    assert mends.mended(body)["n_probs"] == 1
    assert "logprobs" not in body_of(include=["reasoning.encrypted_content"])


def test_a_schema_becomes_the_format_of_the_chat():
    schema = {"type": "object"}
    wanted = {"type": "json_schema", "name": "town", "schema": schema, "strict": True}
    assert body_of(text={"format": wanted})["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "town", "schema": schema, "strict": True},
    }
    assert body_of(text={"format": {"type": "json_object"}})["response_format"] == {
        "type": "json_object"
    }
    assert "response_format" not in body_of(text={"format": {"type": "text"}})


def test_tools_get_the_shape_of_a_chats():
    body = body_of(tools=[WEATHER, TIME], parallel_tool_calls=False)
    function = {name: value for name, value in WEATHER.items() if name != "type"}
    assert body["tools"][0] == {"type": "function", "function": function}
    assert body["tools"][1]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("auto", False)


@pytest.mark.parametrize(
    ("choice", "wanted", "names"),
    [
        ("none", "none", ["weather", "time"]),
        ("required", "required", ["weather", "time"]),
        (
            {"type": "function", "name": "time"},
            {"type": "function", "function": {"name": "time"}},
            ["weather", "time"],
        ),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [TIME]},
            "required",
            ["time"],
        ),
    ],
)
def test_a_tool_can_be_chosen(choice, wanted, names):
    body = body_of(tools=[WEATHER, TIME], tool_choice=choice)
    assert body["tool_choice"] == wanted
    assert [tool["function"]["name"] for tool in body["tools"]] == names


def test_without_tools_a_chat_is_told_nothing_of_them():
    assert body_of(tools=[], tool_choice="auto", parallel_tool_calls=True) == body_of()


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": {"id": "conv_1"}}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"background": True}, "background"),
        ({"context_management": [{"type": "compaction"}]}, "context_management"),
        ({"moderation": {"model": "any"}}, "moderation"),
        ({"truncation": "auto"}, "truncation"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"reasoning": {"summary": "detailed"}}, "reasoning.summary"),
        ({"reasoning": {"mode": "pro"}}, "reasoning.mode"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
        ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
        ({"tools": [WEATHER, {"type": "custom", "name": "x"}]}, "tools.1.type"),
        ({"tools": [WEATHER], "tool_choice": {"type": "file_search"}}, "tool_choice.type"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input.0.id"),
        ({"input": [{"id": "msg_1"}]}, "input.0.id"),
        ({"input": [{"type": "computer_call_output"}]}, "input.0.type"),
        ({"input": [{"type": "reasoning", "encrypted_content": "x"}]}, "input.0.encrypted_content"),
        (of_parts({"type": "input_file"}), "input.0.content.0.type"),
        (of_parts({"type": "input_image", "file_id": "f"}), "input.0.content.0.file_id"),
    ],
)
def test_what_cannot_be_had_is_refused_by_its_name(fields, param):
    refusal = refusal_of(**fields)
    assert isinstance(refusal, NotImplementedHere)
    assert refusal.param == param
    assert refusal.next_step


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": None}, "input"),
        ({"input": [{"role": "robot", "content": "Hi"}]}, "input.0.role"),
        ({"input": [{"role": "user"}]}, "input.0.content"),
        ({"input": [{"role": "user", "content": 7}]}, "input.0.content"),
        (of_parts({"type": "input_text"}), "input.0.content.0.text"),
        (of_parts({"type": "input_image"}), "input.0.content.0.image_url"),
        (of_parts("Hi"), "input.0.content.0.type"),
        ({"input": [{"type": 7}]}, "input.0.type"),
        ({"input": [OUTPUT]}, "input.0.call_id"),
        ({"input": [CUT_CALL]}, "input.0.arguments"),
        ({"tools": [{"type": "function"}]}, "tools.0.name"),
        ({"tools": [{}]}, "tools.0.type"),
        ({"tools": [WEATHER | {"colour": "red"}]}, "tools.0.colour"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": CHOOSE_X}, "tool_choice.name"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function"}}, "tool_choice.name"),
        ({"tools": [WEATHER], "tool_choice": {"type": "auto", "x": 1}}, "tool_choice.x"),
        (
            {"tools": [WEATHER], "tool_choice": {"type": "function", "name": "weather", "x": 1}},
            "tool_choice.x",
        ),
        ({"tools": [WEATHER], "tool_choice": {}}, "tool_choice"),
        ({"input": [{"role": "user", "content": "Hi"}] * 4097}, "input"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
    ],
)
def test_what_is_wrong_is_told_by_its_place(fields, param):
    refusal = refusal_of(**fields)
    assert isinstance(refusal, InvalidRequest)
    assert refusal.param == param


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"input": []}, ("input",)),
        ({"input": 7}, ("input",)),
        ({"input": ["Hi"]}, ("input", 0)),
        ({"tool_choice": "sometimes"}, ("tool_choice",)),
        ({"temperature": -1}, ("temperature",)),
        ({"top_p": 7}, ("top_p",)),
        ({"max_output_tokens": 0}, ("max_output_tokens",)),
        ({"max_output_tokens": "7"}, ("max_output_tokens",)),
        ({"top_logprobs": 21}, ("top_logprobs",)),
        ({"stream": "yes"}, ("stream",)),
        ({"include": ["everything"]}, ("include", 0)),
        ({"metadata": {"a": 7}}, ("metadata", "a")),
        ({"colour": "red"}, ("colour",)),
        ({"reasoning": {"colour": "red"}}, ("reasoning", "colour")),
    ],
)
def test_a_field_of_the_wrong_kind_is_told_by_its_place(fields, where):
    with pytest.raises(ValidationError) as refusal:
        ResponseRequest.model_validate({"input": "Hi"} | fields)
    assert refusal.value.errors()[0]["loc"] == where


def test_what_changes_nothing_by_its_nature_is_taken():
    hints = {
        "user": "me",
        "safety_identifier": "me",
        "prompt_cache_key": "key",
        "prompt_cache_retention": "24h",
        "service_tier": "auto",
        "store": True,
        "truncation": "disabled",
        "background": False,
        "max_tool_calls": 3,
        "metadata": {"a": "b"},
        "text": {"verbosity": "medium"},
        "stream_options": {"include_obfuscation": False},
    }
    assert body_of(**hints) == body_of()


def test_counting_reads_the_same_as_answering():
    asked = {"input": "Hi", "instructions": "Be brief.", "tools": [WEATHER]}
    assert input_body(InputTokensRequest.model_validate(asked)) == body_of(**asked)
    with pytest.raises(NotImplementedHere) as refusal:
        input_body(InputTokensRequest(input=[{"role": "user", "content": ""}], personality="odd"))
    assert refusal.value.param == "personality"


def test_an_error_of_the_chat_names_the_field_that_was_sent():
    with pytest.raises(ModelCannotSee) as refusal, named_as(NAMES):
        raise ModelCannotSee("It can't see.", param="messages.0.content.1")
    assert refusal.value.param == "input"
