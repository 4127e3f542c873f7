"""The older form of a chat, asked as a chat, and refused in its own words."""

import pytest
from pydantic import ValidationError

from eloquio.chat.older_routes import NAMES, GenerateRequest
from eloquio.chat.translated import asking, parsed
from eloquio.errors import InvalidRequest, RemoteMediaRefused
from eloquio.media.pictures import PictureMaker

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
async def test_a_wrong_field_is_refused_by_its_own_name(fields, param):
    with pytest.raises(InvalidRequest, match=rf"The request isn't right\. {param}: ") as refusal:
        await asking(body_of(**fields), NAMES, PictureMaker())()
    assert (refusal.value.status, refusal.value.param) == (400, param)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"temperature": "1"}, "temperature"),
        ({"top_k": True}, "top_k"),
        ({"max_new_tokens": 1.5}, "max_new_tokens"),
        ({"max_tokens": 1}, "max_tokens"),
        ({"stop": ["a"]}, "stop"),
        ({"cancel_id": ""}, "cancel_id"),
    ],
)
def test_a_field_that_nobody_knows_or_of_another_type_is_refused(fields, place):
    with pytest.raises(ValidationError) as refusal:
        body_of(**fields)
    assert refusal.value.errors()[0]["loc"] == (place,)


def test_what_is_only_its_own_is_no_field_of_the_chat():
    assert body_of(cancel_id="mine", system_prompt=None) == {"messages": QUESTION, "stream": True}


async def test_what_is_refused_later_is_named_as_well():
    picture = {"type": "image_url", "image_url": {"url": "http://10.0.0.1/"}}
    body = body_of(messages=[{"role": "user", "content": [picture]}], system_prompt="Be kind.")
    asked = asking(body, NAMES, PictureMaker())
    with pytest.raises(RemoteMediaRefused) as refusal:
        await asked()
    # The system's message stands before the client's own: its number would mislead.
    assert refusal.value.param == "messages"
