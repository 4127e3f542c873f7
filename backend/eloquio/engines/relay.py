"""Ask an engine, and hand on what it answers: a stream's events as they come, or a whole reply."""

import io
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any

import aiohttp

from eloquio.engines.engine import Engine
from eloquio.engines.event_blocks import EventBlocks
from eloquio.engines.exits import without_paths
from eloquio.engines.gathering import Gathering
from eloquio.engines.pool import Pool
from eloquio.errors import (
    BodyTooLarge,
    ContextExceeded,
    EloquioError,
    EngineFault,
    EngineRanOutOfMemory,
    EngineRejectedRequest,
    EngineUnavailable,
    NotImplementedHere,
)

_HEADERS = {"content-type": "application/json"}
_ONE_PIECE_BYTES = 2**20


async def stream(
    engine: Engine, client: aiohttp.ClientSession, path: str, body: bytes
) -> AsyncGenerator[bytes]:
    """Blocks of whole events, without the last one's `[DONE]`.

    `body` has to ask for a stream with `return_progress`: leaving this generator closes the
    connection, and by its own results the engine then sees soon that nobody listens. Ends only
    where the engine said that its answer is whole; otherwise raises why it isn't.
    """
    blocks = EventBlocks()
    try:
        async with client.post(path, data=_payload(body), headers=_HEADERS) as reply:
            if reply.status != 200:
                raise engine_error(reply.status, await reply.read())
            if reply.content_type != "text/event-stream":
                raise EngineFault("The engine didn't stream its answer.")
            gathering = Gathering(reply.connection and reply.connection.transport)
            while chunk := await _read(reply.content):
                block = blocks.feed(chunk)
                if block:
                    yield block
                if blocks.error is not None:
                    raise engine_error(500, blocks.error)
                if blocks.is_whole:
                    return
                if block:
                    await gathering.rest()
    except aiohttp.ClientError as failure:
        raise await engine.cause_of_loss(client) from failure
    raise await engine.cause_of_loss(client)


async def _read(content: aiohttp.StreamReader) -> bytes:
    """What has come, or b"" at the end."""
    try:
        return await content.readany()
    except RuntimeError as failure:
        # So aiohttp tells of a connection that was lost while nobody waited for it.
        raise aiohttp.ServerDisconnectedError from failure


async def ask(
    pool: Pool, model: str | None, method: str, path: str, body: bytes | None = None
) -> bytes:
    """The whole reply to a request that generates nothing: it waits for no turn."""
    async with pool.lease(model, slots=0) as (engine, client):
        return await whole(engine, client, method, path, body)


async def whole(
    engine: Engine,
    client: aiohttp.ClientSession,
    method: str,
    path: str,
    body: bytes | None = None,
) -> bytes:
    """A reply's body; whatever isn't a 200 is raised."""
    try:
        async with client.request(method, path, data=_payload(body), headers=_HEADERS) as reply:
            answer = await reply.read()
            if reply.status != 200:
                raise engine_error(reply.status, answer)
            return answer
    except aiohttp.ClientError as failure:
        raise await engine.cause_of_loss(client) from failure


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """In one piece a request with pictures would hold up everybody while it is handed over."""
    return body if body is None or len(body) < _ONE_PIECE_BYTES else io.BytesIO(body)


_LIBRARY_FAULT = re.compile(r"\[json\.exception[^\]]*\]\s*")
# llama-server answers these with 500, though the request is what is wrong.
_CALLERS_FAULT = re.compile(
    r"(failed to )?pars(e|ing)|syntax error|invalid|unsupported|.*not supported|.*must be|"
    r"number overflow",
    re.IGNORECASE,
)
# Before a chat template's own words, what the engine tried with it takes many lines.
_TEMPLATE_SAYS = re.compile(r".*Jinja Exception:\s*", re.DOTALL)


def engine_error(status: int, body: bytes) -> EloquioError:
    """The engine's own error as one of ours, with its words as the evidence."""
    with suppress(ValueError):
        parsed = json.loads(body)
        if isinstance(parsed, Mapping) and isinstance(error := parsed.get("error"), Mapping):
            return _classified(status, error)
    if status == 413:
        return BodyTooLarge("The request is larger than the engine takes.")
    words = without_paths(body[:500].decode(errors="replace")).strip()
    return EngineFault(f"The engine answered with status {status}.", evidence=words or None)


def _classified(status: int, error: Mapping[str, Any]) -> EloquioError:
    # The name of a fault in a library of the engine's says nothing to anybody.
    words = _LIBRARY_FAULT.sub("", without_paths(str(error.get("message") or ""))).strip()
    if template_says := _TEMPLATE_SAYS.match(words):
        words = words[template_says.end() :]
        return EngineRejectedRequest(
            f"The model's chat template refused the messages: {words}", evidence=words
        )
    code = error.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else status
    if error.get("type") == "exceed_context_size_error":
        needed, held = error.get("n_prompt_tokens"), error.get("n_ctx")
        return ContextExceeded(
            f"The request needs {needed} tokens; the context holds {held}.", evidence=words
        )
    if "context size has been exceeded" in words.lower():
        return ContextExceeded(
            "The requests under way together need more than the context holds.", evidence=words
        )
    if status == 503:
        return EngineUnavailable(
            "The engine isn't ready for requests yet.", evidence=words, retry_after_seconds=1
        )
    if status == 507:
        return EngineRanOutOfMemory("The device had no room left.", evidence=words)
    param = error.get("param") if isinstance(error.get("param"), str) else None
    if status == 501:
        return NotImplementedHere(f"The engine can't do this: {words}", param=param, evidence=words)
    if status < 500 or _CALLERS_FAULT.match(words):
        return EngineRejectedRequest(
            f"The engine refused the request: {words}", param=param, evidence=words
        )
    return EngineFault(f"The engine failed at the request: {words}", evidence=words)
