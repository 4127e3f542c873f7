"""A run's events as a stream that any number of readers follow, each from where it was."""

from collections.abc import AsyncIterator, Iterable

from eloquio import sse
from eloquio.chat.runs.live_run import LiveRun
from eloquio.chat.runs.log import Run
from eloquio.chat.runs.shelf import RunShelf
from eloquio.errors import RunCancelled

# A reader that is far behind is sent what it missed in pieces, so that it holds little at a time.
_EVENTS_AT_ONCE = 256


async def stream(shelf: RunShelf, found: LiveRun | Run, after: int) -> AsyncIterator[bytes]:
    """The events after the number `after`, then the end: `[DONE]`, or the error that it was."""
    async for first_number, events in shelf.kept_events(found, after):
        yield _written(first_number, events)
        after = first_number + len(events) - 1
    if isinstance(found, Run):
        yield _end(found)
        return
    async for part in _live(found, after):
        yield part
    yield _end(found.run)


async def _live(live: LiveRun, after: int) -> AsyncIterator[bytes]:
    sent = max(0, after + 1 - live.first_number)
    while sent < len(live.events) or not live.is_over:
        if events := live.events[sent : sent + _EVENTS_AT_ONCE]:
            yield _written(live.first_number + sent, events)
            sent += len(events)
        elif not await live.changes_within(sse.HEARTBEAT_SECONDS):
            yield sse.HEARTBEAT


def _written(first_number: int, events: Iterable[bytes]) -> bytes:
    return b"".join(
        b"id: %d\ndata: %b\n\n" % (number, event)
        for number, event in enumerate(events, first_number)
    )


def _end(run: Run) -> bytes:
    match run.status:
        case "completed":
            return sse.DONE
        case "cancelled":
            error = RunCancelled("The run was cancelled.").body()
        case _:
            error = {"error": run.error}
    # Without a number: it is no part of the answer, and a run that is continued goes on after it.
    return sse.event(error)
