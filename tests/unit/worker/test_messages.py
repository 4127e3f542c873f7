"""A conversation in OpenAI's shape is made what templates take, and loses nothing by it."""

import json
from typing import Any

import pytest

from eloquio.worker.messages import (
    Arguments,
    Message,
    alternating,
    prepared,
    with_one_system,
    with_system_in_user,
    with_tools_in_system,
)

MISTRAL = "{{ raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}"
DEEPSEEK = "{%- if message['role'] == 'assistant' and message['content'] is none %}"


def user(text: Any) -> Message:
    return {"role": "user", "content": text}


def system(text: Any) -> Message:
    return {"role": "system", "content": text}


def assistant(text: Any, **fields: Any) -> Message:
    return {"role": "assistant", "content": text, **fields}


def call(arguments: str, call_id: str = "call_1") -> dict[str, Any]:
    function = {"name": "weather", "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def test_arguments_are_a_mapping_and_read_as_json_where_a_text_is_wanted() -> None:
    (message,) = prepared([assistant(None, tool_calls=[call('{"city": "日本"}')])], "")
    arguments = message["tool_calls"][0]["function"]["arguments"]
    assert arguments == {"city": "日本"}
    assert f"{arguments}" == '{"city": "日本"}'
    assert "<sep>" + arguments + "<end>" == '<sep>{"city": "日本"}<end>'
    assert json.dumps(arguments) == '{"city": "\\u65e5\\u672c"}'
    assert isinstance(arguments, Arguments)


@pytest.mark.parametrize("given", ["no json", "[1]", '"text"'])
def test_arguments_that_are_no_object_stay_as_they_are(given: str) -> None:
    (message,) = prepared([assistant("", tool_calls=[call(given)])], "")
    assert message["tool_calls"][0]["function"]["arguments"] == given


def test_the_request_is_left_as_it_was() -> None:
    given = [assistant(None, tool_calls=[call("{}")]), {"role": "tool", "tool_call_id": "call_1"}]
    before = json.dumps(given)
    prepared(given, MISTRAL)
    assert json.dumps(given) == before


def test_parts_become_text_for_a_model_that_only_reads() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert prepared([user(parts)], "") == [user("one\ntwo")]


def test_pictures_and_sound_keep_their_places_for_a_model_that_takes_them() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:…"}}
    sound = {"type": "input_audio", "input_audio": {"data": "…", "format": "wav"}}
    given = [user([{"type": "text", "text": "a"}, picture, {"type": "text", "text": "b"}, sound])]
    (message,) = prepared(given, "", takes_media=True)
    assert [part["type"] for part in message["content"]] == ["text", "image", "text", "audio"]


@pytest.mark.parametrize(
    ("template", "content"),
    [
        ("{% for line in message['content'] %}", [{"type": "text", "text": "hi"}]),
        ("{% if message['content'] is string %}…{% for x in message['content'] %}", "hi"),
        ("{{ message['content'] }}", "hi"),
    ],
)
def test_a_template_that_goes_through_parts_gets_parts(template: str, content: Any) -> None:
    assert prepared([user("hi")], template, takes_media=True) == [user(content)]


def test_no_content_is_an_empty_text_but_for_templates_that_ask_for_none() -> None:
    calling = assistant(None, tool_calls=[call("{}")])
    assert prepared([calling], "")[0]["content"] == ""
    assert prepared([calling], DEEPSEEK)[0]["content"] is None
    assert prepared([assistant(None)], DEEPSEEK)[0]["content"] == ""


def test_ids_of_other_models_are_made_ones_that_mistral_takes() -> None:
    calls = [call("{}", "call_abcdef"), call("{}", "abc123XYZ")]
    results = [{"role": "tool", "tool_call_id": each["id"], "content": "ok"} for each in calls]
    made = prepared([assistant(None, tool_calls=calls), *results], MISTRAL)
    ids = [each["id"] for each in made[0]["tool_calls"]]
    assert ids == [message["tool_call_id"] for message in made[1:]]
    assert ids[1] == "abc123XYZ"
    assert len(ids[0]) == 9
    assert ids[0].isalnum()
    assert prepared(results, "")[0]["tool_call_id"] == "call_abcdef"


def test_a_result_tells_the_name_of_its_tool() -> None:
    made = prepared(
        [
            assistant(None, tool_calls=[call("{}")]),
            {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
        ],
        "",
    )
    assert made[1]["name"] == "weather"


def test_a_developer_is_the_system_where_the_template_knows_none() -> None:
    developer = {"role": "developer", "content": "Be brief."}
    assert prepared([developer], "")[0]["role"] == "system"
    assert prepared([developer], "{% if role == 'developer' %}")[0]["role"] == "developer"


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{{ message.reasoning_content }}", "reasoning_content"),
        ("{{ message.thinking }}", "thinking"),
    ],
)
def test_earlier_reasoning_has_the_name_that_the_template_knows(template: str, name: str) -> None:
    assert prepared([assistant("4", reasoning_content="2+2")], template)[0][name] == "2+2"


def test_several_system_messages_become_one_in_front() -> None:
    given = [system("a"), user("b"), system("c")]
    assert with_one_system(given) == [system("a\n\nc"), user("b")]
    assert with_one_system([user("b")]) == [user("b")]


def test_a_system_message_goes_in_front_of_what_the_user_says() -> None:
    assert with_system_in_user([system("a"), user("b")]) == [user("a\n\nb")]
    assert with_system_in_user([system("a")]) == [user("a")]
    picture = {"type": "image"}
    assert with_system_in_user([system("a"), user([picture])]) == [
        user([{"type": "text", "text": "a"}, picture])
    ]


def test_neighbours_of_one_role_become_one() -> None:
    given = [system("s"), user("a"), user("b"), assistant("c"), assistant("d"), user("e")]
    assert alternating(given) == [system("s"), user("a\n\nb"), assistant("c\n\nd"), user("e")]


def test_calls_and_results_are_never_merged() -> None:
    given = [
        user("a"),
        assistant("", tool_calls=[call("{}")]),
        {"role": "tool", "content": "1"},
        {"role": "tool", "content": "2"},
        assistant("b"),
    ]
    assert alternating(given) == given
    calling = assistant("", tool_calls=[call("{}")])
    assert alternating([calling, assistant("b")]) == [calling, assistant("b")]


def test_an_empty_answer_between_two_turns_stays() -> None:
    given = [user("a"), assistant(""), user("b")]
    assert alternating(given) == given


def test_tools_stand_in_the_system_message_where_the_template_looks_for_them_there() -> None:
    phi = "{% if 'tools' in message and message['tools'] is not none %}{{ message['tools'] }}"
    tools = [{"type": "function", "function": {"name": "time"}}]
    written = '[{"name": "time"}]'
    assert with_tools_in_system([system("a")], tools, phi) == [system("a") | {"tools": written}]
    assert with_tools_in_system([user("a")], tools, phi)[0] == system("") | {"tools": written}
    assert with_tools_in_system([user("a")], tools, "{{ tools }}") == [user("a")]
