"""A chat request, made what an engine takes: its pictures, and the fields that it has otherwise."""

import json
from typing import Any

from eloquio.chat import mends
from eloquio.chat.asking import Asked, AskedLater, streamed
from eloquio.chat.schema import ChatRequest
from eloquio.errors import NotImplementedHere
from eloquio.media.fetcher import Fetcher
from eloquio.media.parts import with_pictures

_NOT_YET = {
    "enable_tools": "Tools that Eloquio runs itself",
    "use_adapter": "Switching adapters",
    "audio_base64": "Sound",
}
_SOUND = ("input_audio", "audio", "audio_url")


async def asked_of(request: ChatRequest, body: bytes, fetch: Fetcher | None) -> Asked:
    """What is asked of an engine: `body` as it came, unless it holds what has to be changed.

    `fetch` brings a picture that the request names by its address; None where none may be.
    """
    _refuse_what_is_not_there(request)
    pictures = 0
    if mends.are_needed(request) or _has_parts(request):
        fields = mends.mended(json.loads(body))
        picture = fields.pop("image_base64", None)
        fields["messages"], pictures = await with_pictures(fields["messages"], picture, fetch)
        body = json.dumps(fields).encode()
    options = request.stream_options or {}
    return Asked(
        model=request.model,
        body=streamed(body),
        choices=request.n or 1,
        wants_usage=not request.stream or bool(options.get("include_usage")),
        has_tools=bool(request.tools) and request.tool_choice != "none",
        takes_one_call=mends.takes_one_call(request),
        pictures=pictures,
    )


def asking_of(request: ChatRequest, body: bytes, fetch: Fetcher | None) -> AskedLater:
    """The same, once it is wanted: pictures take a while."""

    async def asked() -> Asked:
        return await asked_of(request, body, fetch)

    return asked


def _has_parts(request: ChatRequest) -> bool:
    """Whether some of it is more than text."""
    return request.image_base64 is not None or any(
        part["type"] != "text"
        for message in request.messages
        if isinstance(message.content, list)
        for part in message.content
    )


def _refuse_what_is_not_there(request: ChatRequest) -> None:
    for name, what in _NOT_YET.items():
        if getattr(request, name) not in (None, False):
            raise NotImplementedHere(
                f"{what} can't be had here yet.", param=name, next_step=f"Leave {name} out."
            )
    for number, message in enumerate(request.messages):
        parts: list[dict[str, Any]] = message.content if isinstance(message.content, list) else []
        if any(part["type"] in _SOUND for part in parts):
            raise NotImplementedHere(
                "Sound can't be had here yet.",
                param=f"messages.{number}.content",
                next_step="Send its words as a text.",
            )
