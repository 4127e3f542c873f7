"""Forward one request to an engine and its reply back, byte for byte."""

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import aiohttp
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from eloquio.engines.engine import Engine
from eloquio.engines.exits import without_paths
from eloquio.engines.pool import Pool
from eloquio.engines.spec import Task
from eloquio.errors import (
    ContextExceeded,
    EloquioError,
    EngineFault,
    EngineRejectedRequest,
    EngineUnavailable,
    ModelCannotChat,
    NotImplementedHere,
)

_HEADERS = {"content-type": "application/json"}
_ERROR_EVENT = b'data: {"error"'
_DONE = b"data: [DONE]"
# Of a stream, to see whether it ended as it should: the last event and its blank line.
_END_BYTES = 32


class Relay(Response):
    """An engine's reply. Ends the generation when the client is gone, streamed or not."""

    def __init__(self, pool: Pool, model: str | None, task: Task, path: str, body: bytes) -> None:
        self._pool = pool
        self._model = model
        self._task = task
        self._path = path
        self._body = body
        self.background = None
        self.status_code = 200

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        forward = asyncio.create_task(self._forward(send))
        gone = asyncio.create_task(_client_gone(receive))
        try:
            await asyncio.wait({forward, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            forward.cancel()
            await asyncio.wait({forward})
        if not forward.cancelled():
            forward.result()

    async def _forward(self, send: Send) -> None:
        async with self._pool.lease(self._model) as (engine, client):
            refuse_other_task(engine, self._task)
            try:
                # Leaving this block closes the connection, by which the engine learns that nobody
                # listens any more: at the next token, or a second later while it says nothing.
                async with client.post(self._path, data=self._body, headers=_HEADERS) as reply:
                    if reply.content_type == "text/event-stream":
                        await self._stream(engine, client, reply, send)
                    else:
                        await self._answer(reply, send)
            except aiohttp.ClientError as failure:
                raise await engine.cause_of_loss(client) from failure

    async def _answer(self, reply: aiohttp.ClientResponse, send: Send) -> None:
        body = await reply.read()
        if reply.status != 200:
            raise engine_error(reply.status, body)
        await send(_start(b"application/json"))
        await send({"type": "http.response.body", "body": body})

    async def _stream(
        self,
        engine: Engine,
        client: aiohttp.ClientSession,
        reply: aiohttp.ClientResponse,
        send: Send,
    ) -> None:
        await send(_start(b"text/event-stream; charset=utf-8", *_STREAM_HEADERS))
        end, has_failed = b"", False
        try:
            async for chunk in reply.content.iter_any():
                if _ERROR_EVENT in chunk:
                    chunk, has_failed = _mended_error(chunk), True
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                end = (end + chunk)[-_END_BYTES:]
            is_whole = has_failed or end.rstrip().endswith(_DONE)
            error = None if is_whole else await engine.cause_of_loss(client)
        except aiohttp.ClientError:
            error = await engine.cause_of_loss(client)
        # A reply that broke off ends with its error and without [DONE].
        await send({"type": "http.response.body", "body": b"" if error is None else _event(error)})


def refuse_other_task(engine: Engine, task: Task) -> None:
    """Raise ModelCannotChat for a model that is made for something else."""
    if engine.spec.task != task:
        raise ModelCannotChat(
            f"{engine.spec.model} is a model for {engine.spec.task}, not for {task}.",
            param="model",
        )


_LIBRARY_FAULT = re.compile(r"\[json\.exception[^\]]*\]\s*")
# llama-server answers these with 500, though the request is what is wrong.
_CALLERS_FAULT = re.compile(
    r"(failed to )?pars(e|ing)|syntax error|invalid|unsupported|.*not supported|.*must be",
    re.IGNORECASE,
)
_STREAM_HEADERS = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))


def _start(content_type: bytes, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", content_type), *headers],
    }


async def _client_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _event(error: EloquioError) -> bytes:
    return b"data: " + json.dumps(error.body()).encode() + b"\n\n"


def _mended_error(chunk: bytes) -> bytes:
    """The engine's error event with our shape: its own has a number for `code` and no `param`."""
    before, _, rest = chunk.partition(_ERROR_EVENT)
    event, separator, after = (_ERROR_EVENT + rest).partition(b"\n\n")
    if not separator:
        return chunk
    return before + _event(engine_error(500, event.removeprefix(b"data: "))) + after


def engine_error(status: int, body: bytes) -> EloquioError:
    """The engine's own error as one of ours, with its words as the evidence."""
    with suppress(ValueError):
        parsed = json.loads(body)
        if isinstance(parsed, Mapping) and isinstance(error := parsed.get("error"), Mapping):
            return _classified(status, error)
    words = without_paths(body[:500].decode(errors="replace")).strip()
    return EngineFault(f"The engine answered with status {status}.", evidence=words or None)


def _classified(status: int, error: Mapping[str, Any]) -> EloquioError:
    # The name of a fault in a library of the engine's says nothing to anybody.
    words = _LIBRARY_FAULT.sub("", without_paths(str(error.get("message") or ""))).strip()
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
    if status == 501:
        return NotImplementedHere(f"The engine can't do this: {words}", evidence=words)
    if status < 500 or _CALLERS_FAULT.match(words):
        return EngineRejectedRequest(f"The engine refused the request: {words}", evidence=words)
    return EngineFault(f"The engine failed at the request: {words}", evidence=words)
