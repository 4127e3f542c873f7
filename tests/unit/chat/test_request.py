"""The bytes of a chat request, as the engine gets them."""

import json

import pytest

from eloquio.chat.request import for_engine
from eloquio.chat.schema import ChatRequest
from eloquio.errors import NotImplementedHere

MESSAGES = [{"role": "user", "content": "Hi"}]


def sent(**fields):
    """What the engine gets for these fields, parsed."""
    return json.loads(for_engine(*request_of(**fields)))


def request_of(**fields):
    body = json.dumps({"messages": MESSAGES} | fields).encode()
    return ChatRequest.model_validate_json(body), body


def test_a_body_without_renamed_fields_is_passed_on_as_it_came():
    body = b'{ "messages":[{"role":"user","content":"\\u00e9"}],\n"seed": 1.0, "unknown": {} }'

    assert for_engine(ChatRequest.model_validate_json(body), body) is body


def test_a_repetition_penalty_gets_the_engines_name():
    assert sent(repetition_penalty=1.3, seed=7) == {
        "messages": MESSAGES,
        "repeat_penalty": 1.3,
        "seed": 7,
    }


def test_the_engines_own_name_wins_over_ours():
    assert sent(repetition_penalty=1.3, repeat_penalty=1.1)["repeat_penalty"] == 1.1


@pytest.mark.parametrize("thinks", [True, False])
def test_thinking_is_an_argument_of_the_template(thinks):
    assert sent(enable_thinking=thinks) == {
        "messages": MESSAGES,
        "chat_template_kwargs": {"enable_thinking": thinks},
    }


def test_an_argument_of_the_template_that_was_given_wins():
    given = {"enable_thinking": False, "documents": []}

    assert sent(enable_thinking=True, chat_template_kwargs=given)["chat_template_kwargs"] == given


@pytest.mark.parametrize("field", [{"repetition_penalty": 1.3}, {"enable_thinking": True}])
def test_half_a_surrogate_pair_is_left_to_the_engine_as_it_came(field):
    request, _ = request_of(**field)
    body = json.dumps({"messages": MESSAGES, "stop": "\ud800"} | field).encode()

    assert json.loads(for_engine(request, body))["stop"] == "\ud800"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "http://192.168.0.1/admin"}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "video_url", "video_url": {"url": "http://192.168.0.1/admin"}},
        {"image_url": {"url": "http://192.168.0.1/admin"}},
    ],
)
def test_an_address_in_a_message_never_reaches_the_engine(part):
    parts = [{"type": "text", "text": "What is this?"}, part]

    with pytest.raises(NotImplementedHere) as refusal:
        sent(messages=[*MESSAGES, {"role": "user", "content": parts}])

    assert refusal.value.param == "messages"
    assert refusal.value.next_step


def test_a_text_in_parts_is_passed_on():
    request, body = request_of(
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "assistant", "content": None, "tool_calls": []},
        ]
    )

    assert for_engine(request, body) is body


@pytest.mark.parametrize(
    "field",
    [
        {"enable_tools": True},
        {"use_adapter": "name"},
        {"use_adapter": True},
        {"image_base64": "aGk="},
        {"audio_base64": "aGk="},
    ],
)
def test_what_isnt_built_is_refused_by_its_name(field):
    with pytest.raises(NotImplementedHere) as refusal:
        sent(**field)

    assert refusal.value.param == next(iter(field))


def test_what_isnt_built_may_be_switched_off():
    sent(enable_tools=False, use_adapter=None, image_base64=None)
