"""Embeddings, reranking, and what an engine can tell of a text or of itself without writing."""

import json
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel, TypeAdapter
from starlette.responses import Response

from eloquio.answers.answer import Answer, WholeAnswer
from eloquio.answers.exchange import Exchange
from eloquio.chat import bodies
from eloquio.chat.generation import count_tokens
from eloquio.chat.reading import reading
from eloquio.chat.reading.schema import (
    Adapter,
    AdapterScale,
    DetokenizeReply,
    DetokenizeRequest,
    EmbeddingReply,
    EmbeddingRequest,
    RerankReply,
    RerankRequest,
    ScaledReply,
    TemplateReply,
    TokenCountReply,
    TokenizeReply,
    TokenizeRequest,
)
from eloquio.chat.request import asking_of
from eloquio.chat.schema import ChatRequest
from eloquio.engines import relay
from eloquio.engines.pool import Pool
from eloquio.errors import InvalidRequest

router = APIRouter(tags=["engine"], route_class=bodies.JsonRoute)

ModelName = Annotated[str | None, Query(description="Missing: the model that was loaded last.")]
_Adapters = TypeAdapter(list[Adapter])


def _json_of(reply: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """In the API's description, a reply that is sent as the bytes it already is."""
    return {200: {"model": reply}}


@router.post("/embeddings", response_class=Response, responses=_json_of(EmbeddingReply))
async def create_embeddings(body: EmbeddingRequest, request: Request) -> Response:
    """OpenAI's embeddings, by a model that is made for them."""
    exchange, pool = Exchange.of(request, cancel_id=body.cancel_id), _pool(request)
    return WholeAnswer(request, exchange, lambda: reading.embeddings(pool, body, exchange))


@router.post("/rerank", response_class=Response, responses=_json_of(RerankReply))
async def rerank(body: RerankRequest, request: Request) -> Response:
    """How relevant each document is for the query, by a reranker; the most relevant first."""
    exchange, pool = Exchange.of(request, cancel_id=body.cancel_id), _pool(request)
    return WholeAnswer(request, exchange, lambda: reading.ranking(pool, body, exchange))


@router.post("/tokenize", response_class=Response, responses=_json_of(TokenizeReply))
async def tokenize(body: TokenizeRequest, request: Request) -> Response:
    """The tokens that the model reads a text as."""
    exchange, pool = Exchange.of(request, cancel_id=body.cancel_id), _pool(request)
    return WholeAnswer(request, exchange, lambda: reading.tokens(pool, body, exchange))


@router.post("/detokenize", response_class=Response, responses=_json_of(DetokenizeReply))
async def detokenize(body: DetokenizeRequest, request: Request) -> Response:
    """The text that tokens stand for."""
    exchange, pool = Exchange.of(request, cancel_id=body.cancel_id), _pool(request)
    return WholeAnswer(request, exchange, lambda: reading.text(pool, body, exchange))


@router.post("/apply-template", response_class=Response, responses=_json_of(TemplateReply))
async def apply_template(body: ChatRequest, request: Request) -> Response:
    """The prompt that the model's template makes of a chat."""
    exchange, pool = Exchange.of(request, cancel_id=body.cancel_id), _pool(request)
    asking = asking_of(body, await request.body(), request.app.state.pictures)
    return WholeAnswer(request, exchange, lambda: reading.prompt(pool, asking, exchange))


@router.post(
    "/chat/completions/input_tokens",
    response_class=Response,
    responses=_json_of(TokenCountReply),
)
async def count_input_tokens(body: ChatRequest, request: Request) -> Answer:
    """How many tokens a chat's prompt has; nothing is generated."""
    exchange = Exchange.of(request, cancel_id=body.cancel_id)
    asking = asking_of(body, await request.body(), request.app.state.pictures)

    async def count() -> bytes:
        tokens = await count_tokens(_pool(request), asking, exchange)
        return TokenCountReply(input_tokens=tokens).model_dump_json().encode()

    return WholeAnswer(request, exchange, count)


@router.get("/lora-adapters")
async def list_adapters(request: Request, model: ModelName = None) -> list[Adapter]:
    """The adapters that the model was loaded with, and how strong each is."""
    return await _adapters(_pool(request), model)


@router.post("/lora-adapters")
async def scale_adapters(
    body: Annotated[list[AdapterScale], Body()], request: Request, model: ModelName = None
) -> ScaledReply:
    """Sets how strong each adapter is, for all requests to come; one that isn't named is left out.

    It holds until the model's engine is started anew.
    """
    pool = _pool(request)
    known = {adapter.id for adapter in await _adapters(pool, model)}
    if unknown := [scale.id for scale in body if scale.id not in known]:
        raise InvalidRequest(
            f"The model has no adapter {unknown[0]}.",
            param="id",
            next_step="GET /v1/lora-adapters lists them; a load names them in lora_adapters.",
        )
    scales = json.dumps([scale.model_dump() for scale in body]).encode()
    answer = await relay.ask(pool, model, "POST", "/lora-adapters", scales)
    return ScaledReply.model_validate_json(answer)


async def _adapters(pool: Pool, model: str | None) -> list[Adapter]:
    answer = await relay.ask(pool, model, "GET", "/lora-adapters")
    adapters = _Adapters.validate_json(answer)
    for adapter in adapters:
        adapter.path = PurePath(adapter.path).name
    return adapters


def _pool(request: Request) -> Pool:
    pool: Pool = request.app.state.pool
    return pool
