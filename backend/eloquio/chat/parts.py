"""The pictures among a conversation's messages, each made what an engine reads, in its place."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from eloquio.errors import EloquioError, InvalidRequest, NotImplementedHere
from eloquio.media.pictures import PictureMaker, Together

Json = dict[str, Any]

MOST_PICTURES = 100

_PICTURES = ("image_url", "input_image")
# Whoever knows whether the model hears says what becomes of sound.
_LEFT_ALONE = ("text", "refusal", "input_audio")
_FILES = ("file", "input_file")


class _Picture(NamedTuple):
    """The part of a message that holds a picture, and where it came from."""

    message: int
    part: int
    source: str
    param: str


async def with_pictures(
    messages: Sequence[Json], image_base64: str | None, maker: PictureMaker
) -> tuple[list[Json], int]:
    """An OpenAI chat's messages with pictures that an engine reads, and how many they are.

    `image_base64` goes before the text of the user's last message. Order, count and all other
    parts stay; `messages` itself is not changed. Raises InvalidRequest for a part of no known type,
    and what `maker` raises for a picture; one that can't be had is enough.
    """
    pictures = list(_pictures(messages))
    wanted = [(picture.source, picture.param) for picture in pictures]
    if image_base64 is not None:
        wanted.append((image_base64, "image_base64"))
    if len(wanted) > MOST_PICTURES:
        raise InvalidRequest(
            f"The request holds {len(wanted)} pictures; at most {MOST_PICTURES} are taken.",
            param="messages",
        )
    urls = await _all_for_engine(wanted, maker)
    seen = [_with_own_parts(message) for message in messages]
    for picture, url in zip(pictures, urls, strict=False):
        parts = seen[picture.message]["content"]
        parts[picture.part] = _as_image_url(parts[picture.part], url)
    if image_base64 is not None:
        last: Json = {"type": "image_url", "image_url": {"url": urls[-1]}}
        _put_before_last_text(seen, last, "image_base64")
    return seen, len(urls)


def _pictures(messages: Sequence[Json]) -> Iterator[_Picture]:
    for message_number, message in enumerate(messages):
        content = message.get("content")
        if not isinstance(content, list):
            continue
        for number, part in enumerate(content):
            param = f"messages.{message_number}.content.{number}"
            if _type_of(part, param) in _PICTURES:
                yield _Picture(message_number, number, *_source(part, param))


def _type_of(part: object, param: str) -> str:
    """The type of a part; raises for one that no model is given."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _FILES:
        raise NotImplementedHere(
            "A file as a part of a message can't be had here.",
            param=f"{param}.type",
            next_step="Send its text as a part of the type text, or a picture of it.",
        )
    if not isinstance(kind, str) or kind not in (*_PICTURES, *_LEFT_ALONE):
        named = f"the type {kind}" if isinstance(kind, str) else "no type"
        raise InvalidRequest(
            f"A part of a message has {named}; it can be text, image_url or input_audio.",
            param=f"{param}.type",
        )
    return kind


def _source(part: Json, param: str) -> tuple[str, str]:
    """The URL or base64 of a picture, and where in the request it stands."""
    picture, param = part.get("image_url"), f"{param}.image_url"
    if isinstance(picture, dict):
        picture, param = picture.get("url"), f"{param}.url"
    if not isinstance(picture, str):
        raise InvalidRequest("A part of a message is a picture without a URL.", param=param)
    return picture, param


async def _all_for_engine(wanted: Sequence[tuple[str, str]], maker: PictureMaker) -> list[str]:
    """All at once; when one can't be had, the others are given up."""
    together = Together()
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(maker.for_engine(*each, together)) for each in wanted]
    except* EloquioError as errors:
        first = errors.exceptions[0]
    else:
        return [task.result() for task in tasks]
    raise first


def _with_own_parts(message: Json) -> Json:
    content = message.get("content")
    return {**message, "content": [*content]} if isinstance(content, list) else message


def _as_image_url(part: Json, url: str) -> Json:
    """The part as chat has it; what was said beside its URL, the detail, stays."""
    picture = part["image_url"]
    if part["type"] == "input_image":
        detail = {"detail": part["detail"]} if "detail" in part else {}
        return {"type": "image_url", "image_url": {"url": url, **detail}}
    beside = picture if isinstance(picture, dict) else {}
    return {**part, "image_url": {**beside, "url": url}}


def with_sound(messages: Sequence[Json], audio_base64: str) -> list[Json]:
    """The messages with a sound before the text of the user's last; it may be a data URL."""
    heard = list(messages)
    head, comma, data = audio_base64.partition(",")
    container = head.partition("/")[2].partition(";")[0] if comma else ""
    sound = {"data": data if comma else audio_base64, "format": container or "wav"}
    _put_before_last_text(heard, {"type": "input_audio", "input_audio": sound}, "audio_base64")
    return heard


def _put_before_last_text(messages: list[Json], put: Json, param: str) -> None:
    number = next(
        (
            number
            for number in reversed(range(len(messages)))
            if messages[number].get("role") == "user"
        ),
        None,
    )
    if number is None:
        raise InvalidRequest(
            f"What {param} holds belongs to the user's last message, and there is none.",
            param=param,
        )
    content = messages[number].get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    texts = (place for place, part in enumerate(parts) if part.get("type") == "text")
    place = next(texts, len(parts))
    messages[number] = {**messages[number], "content": [*parts[:place], put, *parts[place:]]}
