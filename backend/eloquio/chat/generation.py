"""One generation of an engine, from its turn to its last chunk."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from eloquio.chat import mends
from eloquio.chat.asking import Asked
from eloquio.chat.exchange import Exchange
from eloquio.chat.fold import Folding
from eloquio.chat.last_chunks import LastChunks
from eloquio.engines import relay
from eloquio.engines.pool import Pool


async def generate(
    pool: Pool,
    asked: Asked,
    exchange: Exchange,
    begin: Callable[[], None] = lambda: None,
) -> AsyncGenerator[bytes]:
    """Blocks of whole events as they come from the engine, the last `[DONE]` left out.

    Ends only where the engine said that its answer is whole; otherwise raises why it isn't.
    Leaving it ends the generation. `begin` is called once it is the request's turn.
    """
    timeline = exchange.timeline
    last = LastChunks(exchange, asked.choices, wants_usage=asked.wants_usage)
    async with pool.lease(asked.model, asked.choices, asked.task) as (engine, client):
        body = asked.for_engine(engine)
        exchange.model = engine.spec.model
        timeline.is_asked()
        begin()
        async with aclosing(relay.stream(engine, client, asked.path, body)) as blocks:
            async for block in blocks:
                if not block.startswith(b":"):
                    timeline.comes()
                if asked.takes_one_call:
                    block = mends.one_call_of(block)
                if told := last.take(block):
                    yield told


async def whole(pool: Pool, asked: Asked, exchange: Exchange) -> Folding:
    """The same, for who wants it whole."""
    folding = Folding()
    async with aclosing(generate(pool, asked, exchange)) as blocks:
        async for block in blocks:
            folding.add(block)
    return folding
