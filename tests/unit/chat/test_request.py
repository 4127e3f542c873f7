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
from eloquio.media.pictures import PictureMaker

pytestmark = pytest.mark.anyio

MESSAGES = [{"role": "user", "content": "Hi"}]
ALWAYS = {"stream": True, "return_progress": True, "stream_options": {"include_usage": True}}


async def asked(**fields):
    body = json.dumps({"messages": MESSAGES} | fields).encode()
    return await asked_of(ChatRequest.model_validate_json(body), body, PictureMaker())


def picture():
    file = io.BytesIO()
    Image.new("RGB", (2, 2), "red").save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def image_part(url):
    return {"type": "image_url", "image_url": {"url": url}}


async def test_a_plain_body_is_passed_on_as_it_came_but_for_the_stream():
    body = b'{ "messages":[{"role":"user","content":"\\u00e9"}],\n"seed": 1, "unknown": {} }\n'
    told = await asked_of(ChatRequest.model_validate_json(body), body, PictureMaker())
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


async def test_what_isnt_built_is_refused_by_its_name():
    with pytest.raises(NotImplementedHere) as refusal:
        await asked(enable_tools=True)
    assert refusal.value.param == "enable_tools"


def sound_part(data="aGk=", container="wav"):
    return {"type": "input_audio", "input_audio": {"data": data, "format": container}}


async def test_sound_stays_in_its_place_and_is_counted():
    content = [{"type": "text", "text": "What is said?"}, sound_part()]
    told = await asked(messages=[{"role": "user", "content": content}])
    assert told.sounds == asked_again("m", told.body).sounds == 1
    assert json.loads(told.body)["messages"][0]["content"] == content


@pytest.mark.parametrize(
    ("audio_base64", "container"),
    [("aGk=", "wav"), ("data:audio/webm;codecs=opus;base64,aGk=", "webm")],
)
async def test_a_sound_beside_the_messages_comes_before_the_last_text(audio_base64, container):
    told = await asked(audio_base64=audio_base64)
    fields = json.loads(told.body)
    assert "audio_base64" not in fields
    assert fields["messages"][-1]["content"][0] == sound_part(container=container)


@pytest.mark.parametrize("use_adapter", [True, False, "style"])
async def test_the_adapter_goes_to_the_engine_as_it_was_asked_for(use_adapter):
    told = await asked(use_adapter=use_adapter)
    assert told.adapter == asked_again("m", told.body).adapter == use_adapter
    assert json.loads(told.body)["use_adapter"] == use_adapter


async def test_what_isnt_built_may_be_switched_off():
    assert (await asked(enable_tools=False, use_adapter=None, audio_base64=None)).pictures == 0
