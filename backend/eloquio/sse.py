"""Server-sent events, as they go over the wire."""

import json
from collections.abc import Mapping
from typing import Any

DONE = b"data: [DONE]\n\n"
HEARTBEAT = b":\n\n"
HEARTBEAT_SECONDS = 10.0
MEDIA_TYPE = "text/event-stream"
HEADERS = {
    "content-type": f"{MEDIA_TYPE}; charset=utf-8",
    "cache-control": "no-cache",
    # nginx would gather what is to come at once.
    "x-accel-buffering": "no",
}


def event(data: Mapping[str, Any]) -> bytes:
    """One event without a name, as small as JSON can be."""
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def described(description: str, *other_media_types: str) -> dict[int | str, dict[str, Any]]:
    """In the API's description: a reply that is a stream, or else of one of the other types."""
    content: dict[str, Any] = {media_type: {} for media_type in (*other_media_types, MEDIA_TYPE)}
    return {200: {"description": description, "content": content}}
