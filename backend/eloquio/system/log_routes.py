"""What the engines themselves write, as an event stream."""

import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from eloquio import sse
from eloquio.engines.pool import Pool
from eloquio.system.engine_logs import LogReader

router = APIRouter(tags=["system"])

_POLL_SECONDS = 0.25
# What the engines keep of each start.
_MOST_LINES = 500

_STREAM = sse.described("Events `{model, line}`, and `{model, skipped}` where lines were lost.")


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
        headers=sse.HEADERS,
    )


async def log_events(
    pool: Pool,
    reader: LogReader,
    *,
    follow: bool,
    heartbeat_seconds: float = sse.HEARTBEAT_SECONDS,
) -> AsyncIterator[bytes]:
    """Until the server ends, or after the first reading if it isn't to `follow`."""
    sent = time.monotonic()
    # A start or an end is seen at once, so that no log is replaced twice between two readings.
    async for news in pool.changed.watch(lambda: reader.read(pool.engines), _POLL_SECONDS):
        if news:
            yield b"".join(sse.event(event.model_dump()) for event in news)
            sent = time.monotonic()
        elif time.monotonic() - sent >= heartbeat_seconds:
            yield sse.HEARTBEAT
            sent = time.monotonic()
        if not follow:
            return
