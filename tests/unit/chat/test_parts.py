"""Pictures among messages: all of them, in their order, and nothing else changed."""

import base64
import copy
from io import BytesIO

import pytest
from PIL import Image

from eloquio.chat.parts import MOST_PICTURES, with_pictures
from eloquio.errors import InvalidImage, InvalidRequest, NotImplementedHere, RemoteMediaRefused
from eloquio.media.pictures import PictureMaker
from fixtures.picture_files import saved

pytestmark = pytest.mark.anyio

COLOURS = ("red", "green", "blue", "black")


def source(colour: str) -> str:
    data = saved(Image.new("RGB", (8, 8), colour), "WEBP", lossless=True)
    return f"data:image/webp;base64,{base64.b64encode(data).decode()}"


def picture(colour: str, **beside) -> dict:
    return {"type": "image_url", "image_url": {"url": source(colour), **beside}}


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def shown(messages) -> list[list[str]]:
    """Each message as its texts, and the colours of its pictures."""
    return [
        [_shown(part) for part in content] if isinstance(content, list) else [content]
        for content in (message["content"] for message in messages)
    ]


def _shown(part) -> str:
    if part["type"] != "image_url":
        return part.get("text", part["type"])
    head, _, content = part["image_url"]["url"].partition(",")
    assert head == "data:image/png;base64"
    pixel = Image.open(BytesIO(base64.b64decode(content))).getpixel((4, 4))
    return next(
        name for name in COLOURS if Image.new("RGB", (1, 1), name).getpixel((0, 0)) == pixel
    )


async def test_pictures_among_texts_keep_their_order_and_count():
    messages = [
        {"role": "system", "content": "Look well."},
        {"role": "user", "content": [text("one"), picture("red"), text("two"), picture("green")]},
        {"role": "assistant", "content": "Seen."},
        {"role": "user", "content": [picture("blue"), picture("red"), text("three")]},
    ]
    before = copy.deepcopy(messages)
    seen, count = await with_pictures(messages, None, PictureMaker())
    assert count == 4
    assert shown(seen) == [
        ["Look well."],
        ["one", "red", "two", "green"],
        ["Seen."],
        ["blue", "red", "three"],
    ]
    assert messages == before


async def test_messages_without_pictures_are_what_they_were():
    messages = [
        {"role": "user", "content": "words"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": [text("result")], "tool_call_id": "1"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "x"}}]},
        {"role": "user"},
    ]
    assert await with_pictures(messages, None, PictureMaker()) == (messages, 0)


async def test_what_stands_beside_a_picture_stays():
    message = {"role": "user", "name": "Ann", "content": [picture("red", detail="low") | {"id": 7}]}
    [seen], _ = await with_pictures([message], None, PictureMaker())
    [part] = seen["content"]
    assert seen["name"] == "Ann"
    assert part["id"] == 7
    assert part["image_url"]["detail"] == "low"


async def test_a_url_without_its_object_and_an_input_image_become_the_usual_part():
    parts = [
        {"type": "image_url", "image_url": source("red")},
        {"type": "input_image", "image_url": source("green"), "detail": "high"},
    ]
    [seen], count = await with_pictures([{"role": "user", "content": parts}], None, PictureMaker())
    assert (shown([seen]), count) == ([["red", "green"]], 2)
    assert seen["content"][1]["image_url"]["detail"] == "high"


@pytest.mark.parametrize("colour", ["blue"])
@pytest.mark.parametrize("is_url", [True, False])
async def test_the_picture_of_a_field_goes_before_the_last_text_of_the_user(colour, is_url):
    given = source(colour) if is_url else source(colour).partition(",")[2]
    messages = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "answer"},
        {"role": "user", "content": "second"},
        {"role": "assistant", "content": "begun"},
    ]
    seen, count = await with_pictures(messages, given, PictureMaker())
    assert (shown(seen), count) == ([["first"], ["answer"], ["blue", "second"], ["begun"]], 1)
    assert messages[2]["content"] == "second"


async def test_the_picture_of_a_field_goes_behind_pictures_that_come_before_the_text():
    content = [picture("red"), text("one"), picture("green"), text("two")]
    seen, count = await with_pictures(
        [{"role": "user", "content": content}], source("blue"), PictureMaker()
    )
    assert (shown(seen), count) == ([["red", "blue", "one", "green", "two"]], 3)


async def test_the_picture_of_a_field_can_be_all_that_the_user_says():
    for message in ({"role": "user", "content": [picture("red")]}, {"role": "user", "content": []}):
        seen, _ = await with_pictures([message], source("blue"), PictureMaker())
        assert shown(seen)[0][-1] == "blue"


@pytest.mark.parametrize(
    ("part", "param"),
    [
        ({"type": "picture", "url": "x"}, "messages.1.content.1.type"),
        ({"type": "video_url", "video_url": {"url": "x"}}, "messages.1.content.1.type"),
        ({"type": 7}, "messages.1.content.1.type"),
        ({"text": "no type"}, "messages.1.content.1.type"),
        ("words", "messages.1.content.1.type"),
        ({"type": "image_url"}, "messages.1.content.1.image_url"),
        ({"type": "image_url", "image_url": None}, "messages.1.content.1.image_url"),
        ({"type": "image_url", "image_url": {}}, "messages.1.content.1.image_url.url"),
        ({"type": "image_url", "image_url": {"url": 7}}, "messages.1.content.1.image_url.url"),
        ({"type": "input_image", "file_id": "f-1"}, "messages.1.content.1.image_url"),
    ],
)
async def test_a_part_that_is_no_part_is_refused_by_its_place(part, param):
    messages = [
        {"role": "system", "content": "x"},
        {"role": "user", "content": [text("y"), part]},
    ]
    with pytest.raises(InvalidRequest) as refused:
        await with_pictures(messages, None, PictureMaker())
    assert refused.value.param == param
    if param.endswith("type") and isinstance(part, dict) and isinstance(part.get("type"), str):
        assert part["type"] in refused.value.message


async def test_a_file_is_said_not_to_be_had():
    part = {"type": "file", "file": {"file_id": "f-1"}}
    with pytest.raises(NotImplementedHere) as refused:
        await with_pictures([{"role": "user", "content": [part]}], None, PictureMaker())
    assert refused.value.param == "messages.0.content.0.type"


async def test_one_picture_that_cannot_be_had_is_enough_to_refuse():
    broken = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAA!"}}
    content = [picture("red"), broken, picture("green")]
    with pytest.raises(InvalidImage) as refused:
        await with_pictures([{"role": "user", "content": content}], None, PictureMaker())
    assert refused.value.param == "messages.0.content.1.image_url.url"
    remote = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}
    with pytest.raises(RemoteMediaRefused):
        await with_pictures([{"role": "user", "content": [remote]}], None, PictureMaker())


async def test_the_field_of_a_picture_is_named_when_it_is_wrong_or_has_no_place():
    with pytest.raises(InvalidImage) as refused:
        await with_pictures([{"role": "user", "content": "x"}], "!", PictureMaker())
    assert refused.value.param == "image_base64"
    with pytest.raises(InvalidRequest) as refused:
        await with_pictures([{"role": "system", "content": "x"}], source("red"), PictureMaker())
    assert refused.value.param == "image_base64"


async def test_more_pictures_than_are_taken_are_refused_with_both_numbers():
    content = [picture("red")] * MOST_PICTURES
    _, count = await with_pictures([{"role": "user", "content": content}], None, PictureMaker())
    assert count == MOST_PICTURES
    with pytest.raises(InvalidRequest) as refused:
        await with_pictures([{"role": "user", "content": content}], source("red"), PictureMaker())
    assert "101" in refused.value.message
    assert "100" in refused.value.message
