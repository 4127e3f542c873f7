"""OpenAI's older completions: a text goes on, without a chat's template."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from eloquio import sse
from eloquio.answers.answer import Answer, StreamedAnswer, WholeAnswer
from eloquio.answers.exchange import Exchange
from eloquio.chat import bodies, generation, mends
from eloquio.chat.asking import Asked, at_once, streamed
from eloquio.chat.completions.chunks import CompletionChunks
from eloquio.chat.completions.schema import CompletionRequest

router = APIRouter(tags=["completions"], route_class=bodies.JsonRoute)

_REPLIES = sse.described("A completion, or its chunks as an event stream.", "application/json")
# What a token adds to the reply at most: itself and twenty alternatives to it.
_CHUNK_BYTES = 1000


@router.post("/completions", response_class=Response, status_code=200, responses=_REPLIES)
async def create_completion(body: CompletionRequest, request: Request) -> Answer:
    """OpenAI's completions: the model goes on with the prompt itself."""
    exchange = Exchange.of(request, is_stream=bool(body.stream), cancel_id=body.cancel_id)
    chunks = CompletionChunks(body, exchange)
    asking = at_once(_asked(body, await request.body()))
    told = _mended(generation.chunks(request.app.state.pool, asking, exchange), chunks)
    if body.stream:
        wants_usage = bool((body.stream_options or {}).get("include_usage"))
        return StreamedAnswer(request, exchange, _events(told, exchange, chunks, wants_usage))
    return WholeAnswer(request, exchange, lambda: _completion(told, chunks))


def _asked(request: CompletionRequest, body: bytes) -> Asked:
    if mends.completion_needs_them(request):
        body = json.dumps(mends.mended_completion(json.loads(body))).encode()
    return Asked(
        model=request.model,
        body=streamed(body),
        path="/v1/completions",
        choices=len(request.prompts()) * (request.n or 1),
    )


async def _mended(
    parsed: AsyncGenerator[list[dict[str, Any]]], chunks: CompletionChunks
) -> AsyncGenerator[list[dict[str, Any]]]:
    async with aclosing(parsed):
        async for some in parsed:
            if mended := [chunk for each in some if (chunk := chunks.feed(each)) is not None]:
                yield mended


async def _events(
    told: AsyncGenerator[list[dict[str, Any]]],
    exchange: Exchange,
    chunks: CompletionChunks,
    wants_usage: bool,
) -> AsyncGenerator[bytes]:
    async with aclosing(told):
        async for some in told:
            yield b"".join(map(sse.event, some))
    exchange.usage = chunks.usage()
    if wants_usage or exchange.trace_level:
        yield sse.event(chunks.usage_chunk())


async def _completion(
    told: AsyncGenerator[list[dict[str, Any]]], chunks: CompletionChunks
) -> bytes:
    async with aclosing(told):
        all_told = [chunk async for some in told for chunk in some]
    reply = chunks.whole(all_told)
    return await bodies.beside(len(all_told) * _CHUNK_BYTES, bodies.written, reply)
