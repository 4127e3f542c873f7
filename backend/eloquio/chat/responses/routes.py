"""OpenAI's responses, each made of one chat completion."""

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
from eloquio.chat.named_events import Event, encoded, stream_of
from eloquio.chat.reading.schema import TokenCountReply
from eloquio.chat.responses.request import NAMES, chat_body, input_body
from eloquio.chat.responses.schema import InputTokensRequest, ResponseRequest
from eloquio.chat.responses.stream import ResponseEvents
from eloquio.chat.translated import asking, named_as
from eloquio.engines.pool import Pool
from eloquio.errors import NotImplementedHere

router = APIRouter(tags=["responses"], route_class=bodies.JsonRoute)

_REPLIES = sse.described("A response, or the events that tell how it grows.", "application/json")
# What a token adds to the response at most: itself and twenty alternatives, with what they are.
_EVENT_BYTES = 2000


@router.post("/responses", response_class=Response, status_code=200, responses=_REPLIES)
async def create_response(body: ResponseRequest, request: Request) -> Answer:
    """OpenAI's responses. Nothing is stored: a request holds its whole conversation."""
    exchange = Exchange.of(request, is_stream=bool(body.stream), cancel_id=body.cancel_id)
    asked = asking(chat_body(body), NAMES, request.app.state.pictures)
    response = ResponseEvents(body)
    events = _events(request.app.state.pool, asked, exchange, response)
    if not body.stream:
        return WholeAnswer(request, exchange, lambda: _whole(events, response))
    return StreamedAnswer(
        request,
        exchange,
        stream_of(events),
        end=b"",
        error_event=lambda error: b"".join(map(encoded, response.fail(error))),
    )


@router.post(
    "/responses/input_tokens", response_class=Response, responses={200: {"model": TokenCountReply}}
)
async def count_input_tokens(body: InputTokensRequest, request: Request) -> Answer:
    """How many tokens the model would read, its template's own among them."""
    exchange = Exchange.of(request)
    asked = asking(input_body(body), NAMES, request.app.state.pictures)
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
        "Responses aren't stored.",
        param="response_id",
        next_step="Keep what POST /v1/responses answers, or start a run (POST /v1/runs).",
    )


async def _events(
    pool: Pool, asked: AskedLater, exchange: Exchange, response: ResponseEvents
) -> AsyncGenerator[list[Event]]:
    with named_as(NAMES):
        async with aclosing(chunks(pool, asked, exchange)) as parsed:
            async for some in parsed:
                if new := [event for chunk in some for event in response.feed(chunk)]:
                    yield new
    yield response.end()


async def _whole(events: AsyncGenerator[list[Event]], response: ResponseEvents) -> bytes:
    async with aclosing(events):
        async for _ in events:
            pass
    size_bytes = response.told_events * _EVENT_BYTES
    return await bodies.beside(size_bytes, bodies.written, response.response)


async def _input_tokens(pool: Pool, asked: AskedLater, exchange: Exchange) -> bytes:
    with named_as(NAMES):
        count = TokenCountReply(input_tokens=await count_tokens(pool, asked, exchange))
    return count.model_dump_json().encode()
