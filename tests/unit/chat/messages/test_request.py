"""Anthropic's requests, made chat completions, or refused by the path of what isn't right."""

import pytest
from pydantic import ValidationError

from eloquio.chat.messages.request import (
    NAMES,
    chat_body,
    prompt_body,
)
from eloquio.chat.messages.schema import MessageRequest, Prompt
from eloquio.chat.translated import parsed
from eloquio.errors import InvalidRequest, NotImplementedHere

WEATHER = {
    "name": "weather",
    "description": "The weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CLOCK = {"name": "clock", "input_schema": {"type": "object"}}
PIXEL = {"type": "base64", "media_type": "image/png", "data": "aGk="}
PICTURE = {"type": "image", "source": PIXEL}
USER = {"role": "user", "content": "Hi"}


def use(identity="toolu_1", **given):
    return {"type": "tool_use", "id": identity, "name": "weather", "input": given}


def result(identity="toolu_1", content="sunny", **more):
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **more}


def text(said):
    return {"type": "text", "text": said}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def body_of(*messages, **fields):
    given = {"model": "m", "max_tokens": 50, "messages": list(messages) or [USER]} | fields
    return chat_body(MessageRequest.model_validate(given))


def messages_of(*messages, **fields):
    return body_of(*messages, **fields)["messages"]


def test_a_plain_request_asks_for_no_more_than_it_says():
    assert body_of(temperature=0.5, top_p=0.9, top_k=40, stream=True, cancel_id="mine") == {
        "model": "m",
        "messages": [USER],
        "max_tokens": 50,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "timings_per_token": True,
    }


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": 5.5}, "max_tokens"),
        ({"stream": "no"}, "stream"),
        ({"stream": 1}, "stream"),
        ({"temperature": True}, "temperature"),
        ({"temperature": "0.5"}, "temperature"),
        ({"top_k": "3"}, "top_k"),
        ({"stop_sequences": "END"}, "stop_sequences"),
        ({"stop_sequences": ["x" * 5000, "y" * 5000]}, "stop_sequences"),
        ({"system": 7}, "system"),
        ({"model": 7}, "model"),
        ({"tools": [WEATHER | {"strict": "yes"}]}, "tools.0.custom.strict"),
        ({"tools": [WEATHER] * 513}, "tools"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": "2000"}},
            "thinking.enabled.budget_tokens",
        ),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_what_would_only_be_right_after_a_conversion_is_refused(fields, place):
    with pytest.raises(ValidationError) as refusal:
        body_of(**fields)
    assert ".".join(map(str, refusal.value.errors()[0]["loc"])) == place


def test_a_number_without_a_rest_is_whole():
    assert body_of(max_tokens=5.0)["max_tokens"] == 5


def test_more_messages_than_a_prompt_may_have_are_refused_before_they_are_read():
    with pytest.raises(InvalidRequest, match="4097 messages") as refusal:
        body_of(*["no message"] * 4097)
    assert refusal.value.param == "messages"


def test_hints_and_stop_sequences_do_not_reach_the_engine():
    cached = {**text("Hi"), "cache_control": {"type": "ephemeral"}}
    hints = {"metadata": {"user_id": "1"}, "service_tier": "auto", "speed": "standard"}
    made = body_of(user(cached), cache_control={"type": "ephemeral"}, **hints, stop_sequences=["x"])
    assert made == {
        "model": "m",
        "messages": [USER],
        "max_tokens": 50,
        "timings_per_token": True,
    }


@pytest.mark.parametrize("system", ["Be kind.\nBe brief.", [text("Be kind."), text("Be brief.")]])
def test_the_system_prompt_comes_first(system):
    first, second = messages_of(system=system)
    assert first == {"role": "system", "content": "Be kind.\nBe brief."}
    assert second == USER


def test_a_system_message_keeps_its_place():
    late = {"role": "system", "content": "Now in French."}
    assert messages_of(USER, assistant(text("Hello")), late, USER)[2] == late


def test_pictures_keep_their_order_among_the_texts():
    remote = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    [message] = messages_of(user(PICTURE, text("and"), remote))
    assert message["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "text", "text": "and"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]


def test_turns_of_one_role_become_one():
    made = messages_of(USER, user(text("there")), assistant(text("a")), assistant(text("b")), USER)
    assert made == [
        {"role": "user", "content": [text("Hi"), text("there")]},
        {"role": "assistant", "content": "ab"},
        USER,
    ]


def test_a_call_and_its_result_are_an_assistants_and_a_tools_message():
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "eloquio"}
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    calls = assistant(
        thought, hidden, text("Let me look."), use(city='"Pa}ris" 🌍'), use("toolu_2")
    )
    made = messages_of(USER, calls, user(result(), result("toolu_2", [PICTURE]), text("So?")))
    assert made[1:] == [
        {
            "role": "assistant",
            "content": "Let me look.",
            "reasoning_content": "Hm.",
            "tool_calls": [
                {
                    "id": "toolu_1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city": "\\"Pa}ris\\" 🌍"}'},
                },
                {
                    "id": "toolu_2",
                    "type": "function",
                    "function": {"name": "weather", "arguments": "{}"},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "toolu_1", "content": "sunny"},
        {
            "role": "tool",
            "tool_call_id": "toolu_2",
            "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}],
        },
        {"role": "user", "content": "So?"},
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("gone", "Error: gone"),
        ([text("gone")], "Error: gone"),
        ([text("a"), text("b")], [text("Error:"), text("a"), text("b")]),
    ],
)
def test_a_failed_call_is_told_as_one(content, told):
    failed = result(content=content, is_error=True)
    assert messages_of(USER, assistant(use()), user(failed))[-1]["content"] == told


def test_a_last_message_of_the_assistants_is_gone_on_with():
    made = body_of(USER, assistant(text("The best answer is (")))
    assert made["messages"][-1] == {"role": "assistant", "content": "The best answer is ("}
    assert made["continue_final_message"] is True
    assert made["add_generation_prompt"] is False
    assert made["chat_template_kwargs"] == {"enable_thinking": False}


def test_an_empty_last_message_of_the_assistants_asks_for_any_answer():
    made = body_of(USER, {"role": "assistant", "content": ""})
    assert made["messages"] == [USER]
    assert "continue_final_message" not in made


def test_tools_become_functions():
    made = body_of(tools=[WEATHER | {"type": "custom", "strict": True}])
    assert made["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": "The weather",
                "parameters": WEATHER["input_schema"],
                "strict": True,
            },
        }
    ]
    assert made["tool_choice"] == "auto"
    assert made["parallel_tool_calls"] is True


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "clock"}, {"type": "function", "function": {"name": "clock"}}),
    ],
)
def test_a_choice_of_tools_is_put_in_a_chats_words(choice, wanted):
    made = body_of(tools=[WEATHER, CLOCK], tool_choice=choice)
    assert made["tool_choice"] == wanted
    assert made["parallel_tool_calls"] is True
    if choice["type"] != "none":
        choice |= {"disable_parallel_tool_use": True}
        made = body_of(tools=[WEATHER, CLOCK], tool_choice=choice)
        assert made["parallel_tool_calls"] is False


@pytest.mark.parametrize(
    ("thinking", "fields"),
    [
        (
            {"type": "enabled", "budget_tokens": 1024},
            {"chat_template_kwargs": {"enable_thinking": True}, "thinking_budget_tokens": 1024},
        ),
        ({"type": "adaptive"}, {"chat_template_kwargs": {"enable_thinking": True}}),
        ({"type": "disabled"}, {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_thinking_is_what_the_template_is_told(thinking, fields):
    made = body_of(thinking=thinking, max_tokens=2000)
    assert {name: made[name] for name in fields} == fields
    assert "chat_template_kwargs" not in body_of(max_tokens=2000)


def test_a_shaped_output_and_an_effort_are_passed_on():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    wanted = {"effort": "low", "format": {"type": "json_schema", "schema": schema}}
    made = body_of(output_config=wanted)
    assert made["reasoning_effort"] == "low"
    assert made["response_format"]["json_schema"]["schema"] == schema


def test_a_count_reads_what_a_message_would():
    prompt = {"model": "m", "messages": [USER], "system": "Be kind.", "tools": [WEATHER]}
    counted = prompt_body(Prompt.model_validate(prompt))
    asked = chat_body(MessageRequest.model_validate(prompt | {"max_tokens": 5}))
    assert counted.items() <= asked.items()
    assert asked.keys() - counted.keys() == {"max_tokens", "timings_per_token"}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "Hi"}]}, "messages.0.role"),
        ({"messages": [{"role": "user"}]}, "messages.0.content"),
        ({"messages": [user({"type": "sound"})]}, "messages.0.content.0"),
        ({"messages": [user({"type": "text"})]}, "messages.0.content.0.text.text"),
        ({"system": [PICTURE]}, "system.0.type"),
        ({"temperature": 1.5}, "temperature"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 7}, "top_p"),
        ({"stop_sequences": "END"}, "stop_sequences"),
        ({"stop_sequences": [""]}, "stop_sequences.0"),
        ({"tools": [{"name": "with space", "input_schema": {}}]}, "tools.0.custom.name"),
        ({"tools": [{"name": "a"}]}, "tools.0.custom.input_schema"),
        ({"tool_choice": {"type": "some"}}, "tool_choice"),
        ({"thinking": {"type": "enabled", "budget_tokens": 5}}, "thinking.enabled.budget_tokens"),
        ({"max_completion_tokens": 5}, "max_completion_tokens"),
    ],
)
def test_a_field_that_is_not_right_is_named(fields, path):
    given = {"model": "m", "max_tokens": 50, "messages": [USER]} | fields
    with pytest.raises(ValidationError) as refusal:
        MessageRequest.model_validate(given)
    assert ".".join(map(str, refusal.value.errors()[0]["loc"])) == path


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([assistant(text("Hi"))], "messages.0.role"),
        ([user()], "messages.0"),
        ([user(text(""))], "messages.0"),
        ([USER, assistant(), USER], "messages.1"),
        ([user(use())], "messages.0.content.0"),
        ([USER, assistant(text("a"), PICTURE)], "messages.1.content.1"),
        ([USER, assistant(result())], "messages.1.content.0"),
        ([USER, {"role": "system", "content": [PICTURE]}], "messages.1.content.0"),
        ([USER, assistant(use()), USER], "messages"),
        ([USER, assistant(use()), user(result("toolu_2"))], "messages"),
        ([user(result())], "messages"),
        ([USER, assistant(use())], "messages"),
    ],
)
def test_a_conversation_that_cannot_be_is_refused_where_it_goes_wrong(messages, param):
    with pytest.raises(InvalidRequest) as refusal:
        body_of(*messages)
    assert refusal.value.param == param


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "x"}}, "tool_choice.name"),
        ({"tools": [WEATHER, WEATHER]}, "tools.1.name"),
        ({"tools": [{"name": "a", "input_schema": {}}]}, "tools.0.input_schema.type"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "max_tokens"),
        ({"thinking": {"type": "adaptive"}, "messages": [USER, assistant(text("a"))]}, "thinking"),
    ],
)
def test_fields_that_contradict_each_other_are_refused(fields, param):
    with pytest.raises(InvalidRequest) as refusal:
        body_of(**fields)
    assert refusal.value.param == param


@pytest.mark.parametrize(
    ("fields", "param", "named"),
    [
        (
            {"tools": [WEATHER, {"type": "web_search_20250305", "name": "web_search"}]},
            "tools.1",
            "web_search_20250305",
        ),
        (
            {"messages": [user({"type": "document", "source": {}})]},
            "messages.0.content.0",
            "document",
        ),
        (
            {
                "messages": [
                    USER,
                    assistant(use()),
                    user(result(content=[text("a"), {"type": "search_result"}])),
                ]
            },
            "messages.2.content.0.content.1",
            "search_result",
        ),
        (
            {"messages": [user({"type": "image", "source": {"type": "file", "file_id": "f"}})]},
            "messages.0.content.0.source",
            "Files",
        ),
        ({"container": "c"}, "container", "containers"),
        ({"mcp_servers": [{}]}, "mcp_servers", "MCP"),
        ({"speed": "fast"}, "speed", "speed"),
        ({"output_config": {"effort": "max"}}, "output_config.effort", "xhigh"),
        (
            {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
            "context_management",
            "edited",
        ),
    ],
)
def test_what_only_anthropic_has_is_refused_by_its_name(fields, param, named):
    with pytest.raises(NotImplementedHere, match=named) as refusal:
        body_of(**fields)
    assert refusal.value.param == param


def test_an_edit_that_keeps_everything_is_none():
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    assert body_of(context_management=edits) == body_of()


def test_every_body_that_is_made_is_a_chats():
    made = body_of(
        *[USER, assistant(text("a"), use()), user(result(), PICTURE)],
        tools=[WEATHER],
        tool_choice={"type": "any"},
        thinking={"type": "enabled", "budget_tokens": 1024},
        output_config={"effort": "xhigh", "format": {"type": "json_schema", "schema": {}}},
        max_tokens=2000,
        system="Be kind.",
    )
    assert parsed(made, NAMES).messages[0].content == "Be kind."


def test_what_a_chat_refuses_is_named_by_the_field_it_was_made_of():
    with pytest.raises(InvalidRequest, match=r"output_config\.effort: ") as refusal:
        parsed(body_of() | {"reasoning_effort": "extreme"}, NAMES)
    assert refusal.value.param == "output_config.effort"
