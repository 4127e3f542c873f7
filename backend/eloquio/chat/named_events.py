"""The events of APIs whose streams name each of them by its `type`."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from eloquio.chat import bodies

Event = dict[str, Any]
# These tell once more all that was told before.
_WHOLE = (".done", ".completed", ".incomplete")


async def stream_of(events: AsyncGenerator[list[Event]]) -> AsyncGenerator[bytes]:
    """As they go over the wire; of those that come together, the large ones each by itself."""
    told_bytes = 0
    async with aclosing(events):
        async for some in events:
            block = b""
            for event in some:
                if told_bytes >= bodies.LARGE_BYTES and event["type"].endswith(_WHOLE):
                    yield block + await bodies.beside(told_bytes, _whole, event)
                    block = b""
                else:
                    block += encoded(event)
            told_bytes += len(block)
            if block:
                yield block


def encoded(event: Event) -> bytes:
    return _named(event, json.dumps(event, separators=(",", ":")).encode())


def _whole(event: Event) -> bytes:
    return _named(event, bodies.written(event))


def _named(event: Event, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), data)
