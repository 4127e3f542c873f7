"""What an engine reads and doesn't answer: vectors of texts, ranks, tokens, a chat's prompt."""

import asyncio
import json
import re
import struct
from base64 import b64decode
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

import aiohttp
from pydantic import BaseModel, ValidationError

from eloquio.answers.exchange import Exchange
from eloquio.chat import bodies
from eloquio.chat.asking import AskedLater
from eloquio.chat.reading.schema import (
    DetokenizeRequest,
    Document,
    EmbeddingRequest,
    Ranked,
    ReadingUsage,
    RerankReply,
    RerankRequest,
    TokenizeRequest,
)
from eloquio.engines import relay
from eloquio.engines.engine import Engine
from eloquio.engines.pool import Pool
from eloquio.engines.spec import Task
from eloquio.errors import ContextExceeded, EngineFault, InvalidRequest, NotImplementedHere

# An engine learns that a client has left only once nothing was read for a second: it reads what it
# was given to the end. Of long lists it is given two rounds of its usual four slots.
_AT_ONCE = 8
# How an engine says that an input doesn't fit the batch, which is as long as the context.
_TOO_LONG = re.compile(r"input \((\d+) tokens\) is too large.*batch size: (\d+)")
_FLOAT_BYTES = 4

Item = TypeVar("Item")


class _Vector(BaseModel):
    index: int
    embedding: str


class _Vectors(BaseModel):
    data: list[_Vector]
    usage: ReadingUsage


class _Scores(BaseModel):
    results: list[Ranked]
    usage: ReadingUsage


Read = TypeVar("Read", _Vectors, _Scores)


@dataclass
class _Reader:
    """An engine for one request, which it answers in several."""

    engine: Engine
    client: aiohttp.ClientSession
    usage: ReadingUsage = field(default_factory=ReadingUsage)

    async def ask(self, path: str, body: Mapping[str, object], reply: type[Read]) -> Read:
        try:
            answer = await relay.whole(
                self.engine, self.client, "POST", path, json.dumps(body).encode()
            )
            read = reply.model_validate_json(answer)
        except ValidationError as error:
            raise EngineFault("The engine's answer can't be read.") from error
        except EngineFault as fault:
            raise _too_long(fault) or fault from None
        self.usage.prompt_tokens += read.usage.prompt_tokens
        self.usage.total_tokens += read.usage.total_tokens
        return read


async def embeddings(pool: Pool, request: EmbeddingRequest, exchange: Exchange) -> bytes:
    """The body of OpenAI's reply; NotImplementedHere for other dimensions than the model's."""
    items: list[bytes] = []
    async with _reader(pool, request.model, "embedding", exchange) as reader:
        for inputs in _pieces(request.inputs()):
            # The shortest form for both: the engine's own text of a vector is four times as long.
            body = {"input": inputs, "encoding_format": "base64"}
            vectors = (await reader.ask("/v1/embeddings", body, _Vectors)).data
            if len(vectors) != len(inputs):
                raise EngineFault(f"The engine gave {len(vectors)} vectors for {len(inputs)}.")
            for vector in sorted(vectors, key=lambda vector: vector.index):
                items.append(_item(len(items), vector.embedding, request))
    usage = reader.usage.model_dump()
    head = {"object": "list", "model": reader.engine.spec.model, "usage": usage} | exchange.traced()
    return json.dumps(head).encode()[:-1] + b', "data": [' + b", ".join(items) + b"]}"


def _item(index: int, vector: str, request: EmbeddingRequest) -> bytes:
    data = b64decode(vector)
    numbers = struct.unpack(f"<{len(data) // _FLOAT_BYTES}f", data)
    if request.dimensions not in (None, len(numbers)):
        raise NotImplementedHere(
            f"The model's vectors have {len(numbers)} dimensions, and no other number can be had.",
            param="dimensions",
            next_step=f"Leave dimensions out, or ask for {len(numbers)}.",
        )
    told = vector if request.encoding_format == "base64" else numbers
    return b'{"object": "embedding", "index": %d, "embedding": %s}' % (index, _json(told))


def _json(value: str | Sequence[float]) -> bytes:
    try:
        return json.dumps(value, allow_nan=False).encode()
    except ValueError:
        raise EngineFault("The model made a vector that holds no numbers.") from None


async def ranking(pool: Pool, request: RerankRequest, exchange: Exchange) -> bytes:
    """The body of the reply: the best of the documents first."""
    texts = request.texts()
    ranked: list[Ranked] = []
    async with _reader(pool, request.model, "rerank", exchange) as reader:
        for documents in _pieces(texts):
            body = {"query": request.query, "documents": documents}
            scores = (await reader.ask("/v1/rerank", body, _Scores)).results
            first = len(ranked)
            if sorted(score.index for score in scores) != list(range(len(documents))):
                raise EngineFault("The engine didn't score each document once.")
            for score in scores:
                score.index += first
                if request.return_documents:
                    score.document = Document(text=texts[score.index])
            ranked += scores
    ranked.sort(key=lambda score: (-score.relevance_score, score.index))
    reply = RerankReply(
        model=reader.engine.spec.model, results=ranked[: request.top_n], usage=reader.usage
    )
    told = reply.model_dump(exclude_none=True) | exchange.traced()
    return await bodies.beside(sum(map(len, texts)), bodies.written, told)


async def tokens(pool: Pool, request: TokenizeRequest, exchange: Exchange) -> bytes:
    """The engine's own reply."""
    body = await _without_model(request)
    return await _told(pool, request.model, "/tokenize", body, exchange)


async def text(pool: Pool, request: DetokenizeRequest, exchange: Exchange) -> bytes:
    """The engine's own reply; InvalidRequest for a token that the model hasn't."""
    body = await _without_model(request)
    try:
        return await _told(pool, request.model, "/detokenize", body, exchange)
    except EngineFault as fault:
        if "range" not in (fault.evidence or ""):
            raise
        # The engine looks each of them up in its vocabulary, and says so in its library's words.
        raise InvalidRequest(
            "One of the tokens isn't in the model's vocabulary.", param="tokens"
        ) from None


async def prompt(pool: Pool, asking: AskedLater, exchange: Exchange) -> bytes:
    """The engine's own reply: what its template makes of a chat."""
    asked = await asking()
    if asked.pictures:
        exchange.timeline.media_is_made()
    async with pool.lease(asked.model, 0, asked.task) as (engine, client):
        _is_asked(engine, exchange)
        body = await asked.body_for(engine)
        return await relay.whole(engine, client, "POST", "/apply-template", body)


async def _told(pool: Pool, model: str | None, path: str, body: bytes, exchange: Exchange) -> bytes:
    # It takes none of the engine's slots.
    async with pool.lease(model, 0) as (engine, client):
        _is_asked(engine, exchange)
        return await relay.whole(engine, client, "POST", path, body)


async def _without_model(request: TokenizeRequest | DetokenizeRequest) -> bytes:
    fields = request.model_dump(exclude={"model", "cancel_id"}, exclude_none=True)
    return await asyncio.to_thread(bodies.written, fields)


def _is_asked(engine: Engine, exchange: Exchange) -> None:
    exchange.model = engine.spec.model
    exchange.timeline.is_asked()


@asynccontextmanager
async def _reader(
    pool: Pool, model: str | None, task: Task, exchange: Exchange
) -> AsyncIterator[_Reader]:
    async with pool.lease(model, task=task) as (engine, client):
        _is_asked(engine, exchange)
        reader = _Reader(engine, client)
        yield reader
        exchange.usage = reader.usage.model_dump()


def _pieces(items: Iterable[Item]) -> Iterator[Sequence[Item]]:
    rest = iter(items)
    while piece := list(islice(rest, _AT_ONCE)):
        yield piece


def _too_long(fault: EngineFault) -> ContextExceeded | None:
    if (told := _TOO_LONG.search(fault.evidence or "")) is None:
        return None
    return ContextExceeded(
        f"A text of {told[1]} tokens was given; the model reads {told[2]} at once.",
        evidence=fault.evidence,
        next_step="Split the text, or load the model with a larger max_seq_length.",
    )
