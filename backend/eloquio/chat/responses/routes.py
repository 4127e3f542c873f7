"""OpenAI's responses, each made of one chat completion."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from eloquio.chat.answer import Answer, StreamedAnswer, WholeAnswer
from eloquio.chat.asking import Asked
from eloquio.chat.exchange import Exchange
from eloquio.chat.generation import generate
from eloquio.chat.request import asked_of
from eloquio.chat.responses.request import chat_body, chat_request, input_body, told_in_our_fields
from eloquio.chat.responses.schema import InputTokensRequest, ResponseRequest
from eloquio.chat.responses.stream import ResponseEvents, encoded
from eloquio.engines import relay
from eloquio.engines.pool import Pool
from eloquio.errors import NotImplementedHere
from eloquio.media.fetcher import Fetcher

router = APIRouter(tags=["responses"])

_REPLIES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A response, or the events that tell how it grows.",
        "content": {"application/json": {}, "text/event-stream": {}},
    }
}


class InputTokens(BaseModel):
    object: Literal["response.input_tokens"] = "response.input_tokens"
    input_tokens: int


@router.post("/responses", response_class=Response, status_code=200, responses=_REPLIES)
async def create_response(body: ResponseRequest, request: Request) -> Answer:
    """OpenAI's responses. Nothing is stored: a request holds its whole conversation."""
    exchange = Exchange.of(request, is_stream=bool(body.stream), cancel_id=body.cancel_id)
    asked = await _asked(chat_body(body), request.app.state.fetcher)
    events = ResponseEvents(body)
    pool: Pool = request.app.state.pool
    if body.stream:
        return StreamedAnswer(
            request,
            exchange,
            _events(pool, asked, exchange, events),
            end=b"",
            error_event=lambda error: encoded(events.fail(error)),
        )
    return WholeAnswer(request, exchange, lambda: _response(pool, asked, exchange, events))


@router.post(
    "/responses/input_tokens", response_class=Response, responses={200: {"model": InputTokens}}
)
async def count_input_tokens(body: InputTokensRequest, request: Request) -> Answer:
    """How many tokens the model would read, its template's own among them."""
    exchange = Exchange.of(request)
    asked = await _asked(input_body(body), request.app.state.fetcher)
    pool: Pool = request.app.state.pool
    return WholeAnswer(request, exchange, lambda: _input_tokens(pool, asked, exchange))


@router.api_route(
    "/responses/{response_id}", methods=["GET", "POST", "DELETE"], include_in_schema=False
)
@router.api_route(
    "/responses/{response_id}/{what}", methods=["GET", "POST"], include_in_schema=False
)
async def refuse_stored_response() -> None:
    raise NotImplementedHere(
        "Responses aren't kept here.",
        param="response_id",
        next_step="Keep what POST /v1/responses answers, or start a run (POST /v1/runs).",
    )


async def _asked(body: dict[str, Any], fetch: Fetcher | None) -> Asked:
    with told_in_our_fields():
        return await asked_of(chat_request(body), json.dumps(body).encode(), fetch)


async def _events(
    pool: Pool, asked: Asked, exchange: Exchange, events: ResponseEvents
) -> AsyncGenerator[bytes]:
    with told_in_our_fields():
        async with aclosing(generate(pool, asked, exchange)) as blocks:
            async for block in blocks:
                if told := events.take(block):
                    yield encoded(told)
    yield encoded(events.end())


async def _response(pool: Pool, asked: Asked, exchange: Exchange, events: ResponseEvents) -> bytes:
    with told_in_our_fields():
        async with aclosing(generate(pool, asked, exchange)) as blocks:
            async for block in blocks:
                events.take(block)
    events.end()
    return json.dumps(events.response).encode()


async def _input_tokens(pool: Pool, asked: Asked, exchange: Exchange) -> bytes:
    with told_in_our_fields():
        # To count takes none of the engine's slots.
        async with pool.lease(asked.model, 0, asked.task) as (engine, client):
            exchange.model = engine.spec.model
            body = asked.for_engine(engine)
            reply = await relay.whole(engine, client, "POST", f"{asked.path}/input_tokens", body)
    count = InputTokens(input_tokens=json.loads(reply)["input_tokens"])
    return count.model_dump_json().encode()
