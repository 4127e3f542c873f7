"""Anthropic's messages, each made of one chat completion."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from eloquio.chat.answer import Answer, StreamedAnswer, WholeAnswer
from eloquio.chat.asking import Asked
from eloquio.chat.exchange import Exchange
from eloquio.chat.generation import generate
from eloquio.chat.messages.reply import message_of
from eloquio.chat.messages.request import (
    chat_body,
    chat_request,
    prompt_body,
    told_in_our_fields,
)
from eloquio.chat.messages.schema import DisabledThinking, MessageRequest, Prompt, TokenCount
from eloquio.chat.messages.stream import Event, MessageEvents, encoded
from eloquio.chat.request import asked_of
from eloquio.engines import relay
from eloquio.engines.event_blocks import data_of
from eloquio.engines.pool import Pool
from eloquio.errors import EloquioError
from eloquio.errors.anthropic import body_of
from eloquio.media.fetcher import Fetcher

router = APIRouter(tags=["messages"])

_REPLIES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A message, or the events that tell how it grows.",
        "content": {"application/json": {}, "text/event-stream": {}},
    }
}


@router.post("/messages", response_class=Response, status_code=200, responses=_REPLIES)
async def create_message(body: MessageRequest, request: Request) -> Answer:
    """Anthropic's messages."""
    exchange = Exchange.of(request, is_stream=bool(body.stream), cancel_id=body.cancel_id)
    asked = await _asked(chat_body(body), request.app.state.fetcher)
    events = _events(request.app.state.pool, asked, exchange, _told_of(body))
    if not body.stream:
        return WholeAnswer(request, exchange, lambda: _message(events))
    return StreamedAnswer(
        request,
        exchange,
        _encoded(events),
        end=b"",
        error_event=lambda error: _error_event(error, exchange.id),
    )


@router.post(
    "/messages/count_tokens", response_class=Response, responses={200: {"model": TokenCount}}
)
async def count_message_tokens(body: Prompt, request: Request) -> Answer:
    """How many tokens the model would read, its template's own among them."""
    exchange = Exchange.of(request)
    asked = await _asked(prompt_body(body), request.app.state.fetcher)
    pool: Pool = request.app.state.pool
    return WholeAnswer(request, exchange, lambda: _count(pool, asked, exchange))


async def _asked(body: dict[str, Any], fetch: Fetcher | None) -> Asked:
    with told_in_our_fields():
        return await asked_of(chat_request(body), json.dumps(body).encode(), fetch)


def _told_of(body: MessageRequest) -> MessageEvents:
    is_omitted = (
        body.thinking is not None
        and not isinstance(body.thinking, DisabledThinking)
        and body.thinking.display == "omitted"
    )
    return MessageEvents(
        max_tokens=body.max_tokens,
        stops=body.stop_sequences or (),
        tells_thinking=not is_omitted,
    )


async def _events(
    pool: Pool, asked: Asked, exchange: Exchange, events: MessageEvents
) -> AsyncGenerator[list[Event]]:
    # Leaving this block ends the generation, where the message is over before the engine is.
    with told_in_our_fields():
        async with aclosing(generate(pool, asked, exchange)) as blocks:
            async for block in blocks:
                chunks = map(json.loads, data_of(block))
                if told := [event for chunk in chunks for event in events.feed(chunk)]:
                    yield told
                if events.is_over:
                    exchange.finish_reason, exchange.usage = "stop", events.tokens.as_chat_usage()
                    break
    exchange.timeline.ends()
    yield events.end(exchange.trace() if exchange.trace_level else None)


async def _encoded(events: AsyncGenerator[list[Event]]) -> AsyncGenerator[bytes]:
    async with aclosing(events):
        async for some in events:
            yield encoded(some)


async def _message(events: AsyncGenerator[list[Event]]) -> bytes:
    async with aclosing(events):
        message = message_of([event async for some in events for event in some])
    return json.dumps(message).encode()


def _error_event(error: EloquioError, request_id: str) -> bytes:
    return encoded([body_of(error, request_id)])


async def _count(pool: Pool, asked: Asked, exchange: Exchange) -> bytes:
    # To count takes none of the engine's slots.
    async with pool.lease(asked.model, 0, asked.task) as (engine, client):
        exchange.model = engine.spec.model
        body = asked.for_engine(engine)
        reply = await relay.whole(engine, client, "POST", f"{asked.path}/input_tokens", body)
    return TokenCount(input_tokens=json.loads(reply)["input_tokens"]).model_dump_json().encode()
