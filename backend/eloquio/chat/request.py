"""A chat request, made what an engine takes: its pictures, and the fields that it has otherwise."""

from collections.abc import Iterator, Mapping
from typing import Any

from eloquio.chat import bodies, mends
from eloquio.chat.asking import Asked, AskedLater, streamed, written_streamed
from eloquio.chat.parts import with_pictures, with_sound
from eloquio.chat.reply_mends import ReplyWishes
from eloquio.chat.schema import ChatRequest
from eloquio.errors import NotImplementedHere
from eloquio.media.pictures import PictureMaker


async def asked_of(request: ChatRequest, body: bytes, pictures: PictureMaker) -> Asked:
    """What is asked of an engine: `body` as it came, unless it holds what has to be changed.

    `pictures` makes those that it holds.
    """
    if await bodies.beside(len(body), _is_to_be_changed, request):
        fields = await bodies.beside(len(body), bodies.read, body)
        return await asked_of_fields(request, fields, pictures, len(body))
    return _asked(request, await bodies.beside(len(body), streamed, body))


async def asked_of_fields(
    request: ChatRequest,
    fields: Mapping[str, Any],
    pictures: PictureMaker,
    size_bytes: int = bodies.LARGE_BYTES,
) -> Asked:
    """The same for a request whose `fields` are read already; of no known size, they are large."""
    changed = await bodies.beside(size_bytes, _changed, request, fields)
    picture, sound = changed.pop("image_base64", None), changed.pop("audio_base64", None)
    messages, count = await with_pictures(changed["messages"], picture, pictures)
    changed["messages"] = messages if sound is None else with_sound(messages, sound)
    size_bytes = bodies.LARGE_BYTES if count else size_bytes
    return _asked(request, await bodies.beside(size_bytes, written_streamed, changed), count)


def asking_of(request: ChatRequest, body: bytes, pictures: PictureMaker) -> AskedLater:
    """The same, once it is wanted: pictures take a while."""

    async def asked() -> Asked:
        return await asked_of(request, body, pictures)

    return asked


def _asked(request: ChatRequest, body: bytes, pictures: int = 0) -> Asked:
    options = request.stream_options or {}
    return Asked(
        model=request.model,
        body=body,
        choices=request.n or 1,
        wants_usage=not request.stream or bool(options.get("include_usage")),
        has_tools=bool(request.tools) and request.tool_choice != "none",
        reply=ReplyWishes.of(request),
        pictures=pictures,
        sounds=sum(_sounds(request)),
        adapter=request.use_adapter,
    )


def _is_to_be_changed(request: ChatRequest) -> bool:
    _refuse_what_is_not_there(request)
    return mends.are_needed(request) or _has_parts(request)


def _changed(request: ChatRequest, fields: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_what_is_not_there(request)
    return mends.mended(fields)


def _has_parts(request: ChatRequest) -> bool:
    """Whether some of it is more than text."""
    has_own = request.image_base64 is not None or request.audio_base64 is not None
    return has_own or any(
        part["type"] != "text"
        for message in request.messages
        if isinstance(message.content, list)
        for part in message.content
    )


def _sounds(request: ChatRequest) -> Iterator[bool]:
    """For each part of the request, and its own sound, whether it is one."""
    yield request.audio_base64 is not None
    for message in request.messages:
        if isinstance(message.content, list):
            yield from (part["type"] == "input_audio" for part in message.content)


def _refuse_what_is_not_there(request: ChatRequest) -> None:
    if request.enable_tools:
        raise NotImplementedHere(
            "Eloquio runs no tools itself: it passes their calls to the client.",
            param="enable_tools",
            next_step="Leave enable_tools out, and send the tools in tools.",
        )
