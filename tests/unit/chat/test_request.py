"""A chat request, as an engine is asked it."""

import base64
import io
import json

import pytest
from PIL import Image

from eloquio.chat.asking import asked_again, streamed
from eloquio.chat.request import asked_of
from eloquio.chat.schema import ChatRequest
from eloquio.errors import InvalidImage, NotImplementedHere, RemoteMediaRefused

pytestmark = pytest.mark.anyio

MESSAGES = [{"role": "user", "content": "Hi"}]
ALWAYS = {"stream": True, "return_progress": True, "stream_options": {"include_usage": True}}


async def asked(**fields):
    body = json.dumps({"messages": MESSAGES} | fields).encode()
    return await asked_of(ChatRequest.model_validate_json(body), body, None)


def picture():
    file = io.BytesIO()
    Image.new("RGB", (2, 2), "red").save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def image_part(url):
    return {"type": "image_url", "image_url": {"url": url}}


async def test_a_plain_body_is_passed_on_as_it_came_but_for_the_stream():
    body = b'{ "messages":[{"role":"user","content":"\\u00e9"}],\n"seed": 1, "unknown": {} }\n'
    told = await asked_of(ChatRequest.model_validate_json(body), body, None)
    assert told.body.startswith(body.rstrip()[:-1] + b",")
    assert json.loads(told.body) == json.loads(body) | ALWAYS


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
async def test_each_encoding_that_json_may_have_gets_its_stream(encoding):
    body = '{"messages": [], "text": "é🌍"}'.encode(encoding)
    assert json.loads(streamed(body)) == {"messages": [], "text": "é🌍"} | ALWAYS


async def test_what_the_client_said_of_streams_is_kept_beside_the_engines():
    assert not (await asked(stream=True)).wants_usage
    assert (await asked(stream=True, stream_options={"include_usage": True})).wants_usage
    assert (await asked()).wants_usage


async def test_pictures_are_counted_and_made_what_the_engine_takes():
    parts = [image_part(picture()), {"type": "text", "text": "and"}, image_part(picture())]
    told = await asked(messages=[{"role": "user", "content": parts}])
    assert told.pictures == 2
    assert asked_again("m", told.body).pictures == 2
    sent = json.loads(told.body)["messages"][0]["content"]
    assert [part["type"] for part in sent] == ["image_url", "text", "image_url"]


async def test_a_picture_beside_the_messages_comes_before_the_last_text():
    told = await asked(image_base64=picture())
    fields = json.loads(told.body)
    assert "image_base64" not in fields
    assert [part["type"] for part in fields["messages"][0]["content"]] == ["image_url", "text"]


@pytest.mark.parametrize("url", ["http://192.168.0.1/admin", "file:///etc/passwd"])
async def test_an_address_in_a_message_never_reaches_the_engine(url):
    with pytest.raises(RemoteMediaRefused) as refusal:
        await asked(messages=[{"role": "user", "content": [image_part(url)]}])
    assert refusal.value.param == "messages.0.content.0.image_url.url"


async def test_what_is_no_picture_is_refused():
    with pytest.raises(InvalidImage):
        await asked(image_base64="no base64!")


@pytest.mark.parametrize(
    "fields",
    [
        {"enable_tools": True},
        {"use_adapter": "name"},
        {"use_adapter": True},
        {"audio_base64": "aGk="},
    ],
)
async def test_what_isnt_built_is_refused_by_its_name(fields):
    with pytest.raises(NotImplementedHere) as refusal:
        await asked(**fields)
    assert refusal.value.param == next(iter(fields))


async def test_sound_in_a_message_is_refused_by_its_place():
    sound = {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}
    with pytest.raises(NotImplementedHere) as refusal:
        await asked(messages=[{"role": "user", "content": [sound]}])
    assert refusal.value.param == "messages.0.content"


async def test_what_isnt_built_may_be_switched_off():
    assert (await asked(enable_tools=False, use_adapter=None, audio_base64=None)).pictures == 0
