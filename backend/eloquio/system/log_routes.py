"""What the engines themselves write, as an event stream."""

import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from eloquio.engines.pool import Pool
from eloquio.system.engine_logs import LogReader

router = APIRouter(tags=["system"])

_POLL_SECONDS = 0.25
_HEARTBEAT_SECONDS = 10.0
# What the engines keep of each start.
_MOST_LINES = 500

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events `{model, line}`, and `{model, skipped}` where lines were lost.",
        "content": {"text/event-stream": {}},
    }
}


@router.get("/logs", response_class=StreamingResponse, responses=_STREAM)
async def read_logs(
    request: Request,
    model: str | None = None,
    tail: Annotated[int, Query(ge=0, le=_MOST_LINES)] = 100,
    follow: bool = True,
) -> StreamingResponse:
    """The engines' own logs: the last lines of each, and then what they write.

    With `model`, of that one only, be it loaded already or later.
    """
    return StreamingResponse(
        log_events(request.app.state.pool, LogReader(tail, model), follow=follow),
        media_type="text/event-stream",
        headers={"cache-control": "no-cache", "x-accel-buffering": "no"},
    )


async def log_events(
    pool: Pool,
    reader: LogReader,
    *,
    follow: bool,
    heartbeat_seconds: float = _HEARTBEAT_SECONDS,
) -> AsyncIterator[bytes]:
    """Until the server ends, or after the first reading if it isn't to `follow`."""
    sent = time.monotonic()
    # A start or an end is seen at once, so that no log is replaced twice between two readings.
    async for news in pool.changed.watch(lambda: reader.read(pool.engines), _POLL_SECONDS):
        if news:
            yield b"".join(format_sse_event(data_str=event.model_dump_json()) for event in news)
            sent = time.monotonic()
        elif time.monotonic() - sent >= heartbeat_seconds:
            yield KEEPALIVE_COMMENT
            sent = time.monotonic()
        if not follow:
            return
