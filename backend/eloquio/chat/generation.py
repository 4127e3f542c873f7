"""One generation of an engine, from its turn to its last chunk."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from eloquio.answers.exchange import Exchange
from eloquio.chat.asking import AskedLater
from eloquio.chat.fold import Folding
from eloquio.chat.last_chunks import LastChunks
from eloquio.chat.reply_mends import ReplyMends
from eloquio.engines import relay
from eloquio.engines.event_blocks import data_of
from eloquio.engines.pool import Pool


async def generate(
    pool: Pool,
    asking: AskedLater,
    exchange: Exchange,
    begin: Callable[[], None] = lambda: None,
) -> AsyncGenerator[bytes]:
    """Blocks of whole events as they come from the engine, the last `[DONE]` left out.

    Ends only where the engine said that its answer is whole; otherwise raises why it isn't.
    Leaving it ends the generation. `begin` is called once it is the request's turn.
    """
    timeline = exchange.timeline
    asked = await asking()
    if asked.pictures:
        timeline.media_is_made()
    mends = ReplyMends(asked.reply)
    last = LastChunks(exchange, asked.choices, wants_usage=asked.wants_usage)
    async with pool.lease(asked.model, asked.choices, asked.task) as (engine, client):
        body = await asked.body_for(engine)
        exchange.model = engine.spec.model
        timeline.is_asked()
        begin()
        async with aclosing(relay.stream(engine, client, asked.path, body)) as blocks:
            async for block in blocks:
                if not block.startswith(b":"):
                    timeline.comes()
                if told := last.take(mends.take(block)):
                    yield told


async def whole(pool: Pool, asking: AskedLater, exchange: Exchange) -> Folding:
    """The same, for who wants it whole."""
    folding = Folding()
    async with aclosing(generate(pool, asking, exchange)) as blocks:
        async for block in blocks:
            folding.add(block)
    return folding


async def chunks(
    pool: Pool, asking: AskedLater, exchange: Exchange
) -> AsyncGenerator[list[dict[str, Any]]]:
    """The same, parsed, for who makes something else of it."""
    async with aclosing(generate(pool, asking, exchange)) as blocks:
        async for block in blocks:
            if parsed := [json.loads(data) for data in data_of(block)]:
                yield parsed


async def count_tokens(pool: Pool, asking: AskedLater, exchange: Exchange) -> int:
    """How many tokens the prompt has, its template's own among them; generates nothing."""
    asked = await asking()
    if asked.pictures:
        exchange.timeline.media_is_made()
    # It takes none of the engine's slots.
    async with pool.lease(asked.model, 0, asked.task) as (engine, client):
        exchange.model = engine.spec.model
        exchange.timeline.is_asked()
        path, body = f"{asked.path}/input_tokens", await asked.body_for(engine)
        reply = await relay.whole(engine, client, "POST", path, body)
    tokens: int = json.loads(reply)["input_tokens"]
    return tokens
