"""One answer of an engine, as the events of its stream."""

from collections.abc import AsyncGenerator, Callable

import aiohttp

from eloquio.chat.event_stream import DONE, EventSplitter
from eloquio.engines.pool import Pool
from eloquio.engines.relay import engine_error, refuse_other_task
from eloquio.errors import EngineFault

_HEADERS = {"content-type": "application/json"}
_ERROR = b'{"error"'


async def generate(
    pool: Pool, model: str, body: bytes, begin: Callable[[], None]
) -> AsyncGenerator[list[bytes]]:
    """The chunks as they come, those together that came together.

    Ends only where the engine said that its answer is whole; otherwise raises why it isn't. `begin`
    is called once there is an engine that takes the request.
    """
    async with pool.lease(model) as (engine, client):
        refuse_other_task(engine, "chat")
        begin()
        try:
            # Leaving this block closes the connection, by which the engine stops.
            async with client.post("/v1/chat/completions", data=body, headers=_HEADERS) as reply:
                if reply.status != 200:
                    raise engine_error(reply.status, await reply.read())
                if reply.content_type != "text/event-stream":
                    raise EngineFault("The engine didn't stream its answer.")
                splitter = EventSplitter()
                async for chunk in reply.content.iter_any():
                    events = splitter.feed(chunk)
                    whole, end = _until_end(events)
                    if whole:
                        yield whole
                    if end == DONE:
                        return
                    if end is not None:
                        raise engine_error(500, end)
        except aiohttp.ClientError as failure:
            raise await engine.cause_of_loss(client) from failure
        raise await engine.cause_of_loss(client)


def _until_end(events: list[bytes]) -> tuple[list[bytes], bytes | None]:
    """The chunks before the end, and the event that is the end, if it is among them."""
    for position, event in enumerate(events):
        if event == DONE or event.startswith(_ERROR):
            return events[:position], event
    return events, None
