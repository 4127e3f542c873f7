"""The JSON of requests: read and written so that a large one holds nobody up."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from json import decoder, scanner
from typing import Any, ParamSpec, TypeVar

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from eloquio.chat.well_formed import WellFormed

LARGE_BYTES = 2**20
_MANY_VALUES = 100_000
# Of a chat: the request, its messages, a message, its parts.
_LEVELS = 4
_ITEMS_AT_ONCE = 100

Taken = ParamSpec("Taken")
Made = TypeVar("Made")
Scan = Callable[[str, int], tuple[Any, int]]


async def beside(
    size_bytes: int, work: Callable[Taken, Made], *args: Taken.args, **kwargs: Taken.kwargs
) -> Made:
    """What `work` makes of a body of that size: in a thread, where it is large."""
    if size_bytes < LARGE_BYTES:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


def read(body: bytes) -> Any:  # noqa: ANN401
    """The JSON in any of its encodings; raises ValueError."""
    if len(body) < LARGE_BYTES or body.count(b",") < _MANY_VALUES:
        return json.loads(body)
    return _Unhurried().decode(body.decode(json.detect_encoding(body), "surrogatepass"))


def written(value: object) -> bytes:
    """Its JSON, as `json.dumps` has it."""
    return b"".join(_pieces(value))


class JsonRoute(APIRoute):
    """Its body is read beside the loop, and is refused where JSON couldn't carry it on."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return answer


class _JsonRequest(Request):
    async def json(self) -> Any:  # noqa: ANN401
        if not hasattr(self, "_json"):
            body = await self.body()
            self._json = await beside(len(body), _read_well_formed, body)
        return self._json


def _read_well_formed(body: bytes) -> Any:  # noqa: ANN401
    value = read(body)
    return WellFormed.of(value) if isinstance(value, dict) else value


class _Unhurried(json.JSONDecoder):
    """Reads the outer levels in Python, between whose steps other threads have their turns.

    The parser in C has none: a body of many values would hold up the loop from any thread.
    """

    def __init__(self) -> None:
        super().__init__()
        whole: Scan = scanner.make_scanner(self)  # type: ignore[arg-type]
        self.scan_once = _scanner(_LEVELS, whole)


def _scanner(levels: int, whole: Scan) -> Scan:
    if levels == 0:
        return whole
    inner = _scanner(levels - 1, whole)

    def scan(text: str, at: int) -> tuple[Any, int]:
        match text[at : at + 1]:
            case "{":
                found = decoder.JSONObject((text, at + 1), True, inner, None, None)  # type: ignore[attr-defined]
            case "[":
                # Of numbers or texts, each is a turn as it is.
                each = inner if text[at + 1 : at + 2] in ("{", "[") else whole
                found = decoder.JSONArray((text, at + 1), each)  # type: ignore[attr-defined]
            case _:
                return whole(text, at)
        value, end = found
        return value, end

    return scan


def _pieces(value: object) -> Iterator[bytes]:
    """Joined once, since a body with pictures would be copied at each of its levels."""
    match value:
        case dict() if value:
            for number, (name, each) in enumerate(value.items()):
                yield b"%s%s: " % (b", " if number else b"{", json.dumps(name).encode())
                yield from _pieces(each)
            yield b"}"
        case list() if len(value) > _ITEMS_AT_ONCE:
            for start in range(0, len(value), _ITEMS_AT_ONCE):
                some = json.dumps(value[start : start + _ITEMS_AT_ONCE])
                yield b"%s%s" % (b", " if start else b"[", some[1:-1].encode())
            yield b"]"
        case list() if value:
            for number, each in enumerate(value):
                yield b", " if number else b"["
                yield from _pieces(each)
            yield b"]"
        case _:
            yield json.dumps(value).encode()
