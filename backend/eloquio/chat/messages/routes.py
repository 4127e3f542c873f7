"""Anthropic's messages, each made of one chat completion."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

from fastapi import APIRouter, Request
from starlette.responses import Response

from eloquio import sse
from eloquio.answers.answer import Answer, StreamedAnswer, WholeAnswer
from eloquio.answers.exchange import Exchange
from eloquio.chat import bodies
from eloquio.chat.asking import AskedLater
from eloquio.chat.generation import chunks, count_tokens
from eloquio.chat.messages.reply import message_of
from eloquio.chat.messages.request import NAMES, chat_body, prompt_body
from eloquio.chat.messages.schema import DisabledThinking, MessageRequest, Prompt, TokenCount
from eloquio.chat.messages.stream import MessageEvents
from eloquio.chat.named_events import Event, encoded, stream_of
from eloquio.chat.translated import asking, named_as
from eloquio.engines.pool import Pool
from eloquio.errors import EloquioError
from eloquio.errors.anthropic import body_of

router = APIRouter(tags=["messages"], route_class=bodies.JsonRoute)

_REPLIES = sse.described("A message, or the events that tell how it grows.", "application/json")


@router.post("/messages", response_class=Response, status_code=200, responses=_REPLIES)
async def create_message(body: MessageRequest, request: Request) -> Answer:
    """Anthropic's messages."""
    exchange = Exchange.of(request, is_stream=bool(body.stream), cancel_id=body.cancel_id)
    asked = asking(chat_body(body), NAMES, request.app.state.pictures)
    events = _events(request.app.state.pool, asked, exchange, _events_of(body))
    if not body.stream:
        return WholeAnswer(request, exchange, lambda: _message(events))
    return StreamedAnswer(
        request,
        exchange,
        stream_of(events),
        end=b"",
        error_event=lambda error: _error_event(error, exchange.id),
    )


@router.post(
    "/messages/count_tokens", response_class=Response, responses={200: {"model": TokenCount}}
)
async def count_message_tokens(body: Prompt, request: Request) -> Answer:
    """How many tokens the model would read, its template's own among them."""
    exchange = Exchange.of(request)
    asked = asking(prompt_body(body), NAMES, request.app.state.pictures)
    pool: Pool = request.app.state.pool
    return WholeAnswer(request, exchange, lambda: _count(pool, asked, exchange))


def _events_of(body: MessageRequest) -> MessageEvents:
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
    pool: Pool, asked: AskedLater, exchange: Exchange, events: MessageEvents
) -> AsyncGenerator[list[Event]]:
    # Leaving this block ends the generation, where the message is over before the engine is.
    with named_as(NAMES):
        async with aclosing(chunks(pool, asked, exchange)) as parsed:
            async for some in parsed:
                if new := [event for chunk in some for event in events.feed(chunk)]:
                    yield new
                if events.is_over:
                    exchange.finish_reason, exchange.usage = "stop", events.usage.of_chat()
                    break
    yield events.end(**exchange.traced())


async def _message(events: AsyncGenerator[list[Event]]) -> bytes:
    async with aclosing(events):
        message = message_of([event async for some in events for event in some])
    return json.dumps(message).encode()


def _error_event(error: EloquioError, request_id: str) -> bytes:
    return encoded(body_of(error, request_id))


async def _count(pool: Pool, asked: AskedLater, exchange: Exchange) -> bytes:
    with named_as(NAMES):
        tokens = await count_tokens(pool, asked, exchange)
    return TokenCount(input_tokens=tokens).model_dump_json().encode()
