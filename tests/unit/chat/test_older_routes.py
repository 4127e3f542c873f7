"""The older form of a chat, asked as a chat, and refused in its own words."""

import pytest

from eloquio.chat.older_routes import NAMES, GenerateRequest
from eloquio.chat.translated import asking, parsed
from eloquio.errors import InvalidRequest, NotImplementedHere

pytestmark = pytest.mark.anyio

QUESTION = [{"role": "user", "content": "Hi"}]


def body_of(**fields):
    return GenerateRequest.model_validate({"messages": QUESTION} | fields).as_chat()


def test_its_fields_become_those_of_a_streamed_chat():
    chat = parsed(body_of(max_new_tokens=7, system_prompt="Be kind.", top_k=3), NAMES)
    assert (chat.max_tokens, chat.top_k, chat.stream) == (7, 3, True)
    assert [message.role for message in chat.messages] == ["system", "user"]
    assert chat.messages[0].content == "Be kind."


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": 5}, "temperature"),
        ({"top_p": -1}, "top_p"),
        ({"top_k": -2}, "top_k"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
    ],
)
def test_a_wrong_field_is_refused_by_its_own_name(fields, param):
    with pytest.raises(InvalidRequest, match=rf"The request isn't right\. {param}: ") as refusal:
        asking(body_of(**fields), NAMES, None)
    assert (refusal.value.status, refusal.value.param) == (400, param)


async def test_what_is_refused_later_is_named_as_well():
    sound = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
    body = body_of(messages=[{"role": "user", "content": [sound]}], system_prompt="Be kind.")
    asked = asking(body, NAMES, None)
    with pytest.raises(NotImplementedHere) as refusal:
        await asked()
    # The system's message stands before the client's own: its number would mislead.
    assert refusal.value.param == "messages"
