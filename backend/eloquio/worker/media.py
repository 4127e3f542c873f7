"""The pictures and sounds of a conversation, taken out of its messages, in their order."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from urllib.parse import unquote_to_bytes

from PIL import Image

from eloquio.worker import sound
from eloquio.worker.failures import RequestFailed
from eloquio.worker.sound import Samples
from eloquio.worker_plan import WorkerPlan

Message = dict[str, Any]

_PICTURES = ("image_url",)
_SOUNDS = ("input_audio", "audio_url")
# What the backend makes of every picture.
_FORMATS = ("PNG", "JPEG")


@dataclass
class _Taken:
    pictures: list[Image.Image] = field(default_factory=list)
    sounds: list[Samples] = field(default_factory=list)


def taken_from(
    messages: Sequence[Mapping[str, Any]], plan: WorkerPlan
) -> tuple[list[Message], list[Image.Image], list[Samples]]:
    """The messages with a part `image` or `audio` where each was, the pictures and the sounds.

    Pictures are in red, green and blue; sounds have one channel of `sound.RATE` samples a second.
    Decodes, so it belongs in a thread. Raises a RequestFailed for what can't be decoded, and where
    the model has nothing but text.
    """
    taken = _Taken()
    made = [
        _without_media(dict(message), f"messages.{number}", taken, plan)
        for number, message in enumerate(messages)
    ]
    return made, taken.pictures, taken.sounds


def _without_media(message: Message, param: str, taken: _Taken, plan: WorkerPlan) -> Message:
    content = message.get("content")
    if isinstance(content, list):
        message["content"] = [
            _without_one(part, f"{param}.content.{number}", taken, plan)
            for number, part in enumerate(content)
        ]
    return message


def _without_one(part: Any, param: str, taken: _Taken, plan: WorkerPlan) -> Any:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in _PICTURES:
        if plan.kind == "text":
            raise RequestFailed(f"{plan.model} can't see pictures", param=param)
        taken.pictures.append(_picture(_bytes_at(part["image_url"], f"{param}.image_url"), param))
        return {"type": "image"}
    if kind in _SOUNDS:
        if plan.kind == "text":
            raise RequestFailed(f"{plan.model} can't hear sounds", param=param)
        data = _bytes_at(part.get(kind), f"{param}.{kind}")
        taken.sounds.append(sound.decoded(data, param=param))
        return {"type": "audio"}
    return part


def _bytes_at(holder: Any, param: str) -> bytes:
    """What a part holds: at a data URL, or as `data` in base64."""
    source = holder
    if isinstance(holder, Mapping):
        source = holder.get("url") or holder.get("data")
    if not isinstance(source, str) or not source:
        raise RequestFailed("a part of a message has no data", param=param)
    if source[:5].lower() != "data:":
        return _from_base64(source, param)
    head, comma, content = source.partition(",")
    if not comma:
        raise RequestFailed("a data URL ends before its data", param=param)
    is_base64 = head.lower().endswith(";base64")
    return _from_base64(content, param) if is_base64 else unquote_to_bytes(content)


def _from_base64(text: str, param: str) -> bytes:
    letters = "".join(text.split()).rstrip("=")
    try:
        return base64.b64decode(letters + "=" * (-len(letters) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestFailed("a part of a message isn't valid base64", param=param) from error


def _picture(data: bytes, param: str) -> Image.Image:
    try:
        with Image.open(BytesIO(data), formats=_FORMATS) as picture:
            return picture.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise RequestFailed("a picture can't be decoded as PNG or JPEG", param=param) from error
