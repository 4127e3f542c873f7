"""The worker's HTTP: llama-server's routes, for a model that transformers runs."""

import asyncio
import contextlib
import hmac
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from eloquio.worker.failures import LoadFailed, NotHere, RequestFailed, StillLoading
from eloquio.worker.progress import Progress
from eloquio.worker_plan import WorkerPlan

LOAD_FAILED = "worker-load-failed: "
"""Begins the last line of a worker that ends because it can't load; JSON of LoadFailed follows."""

logger = logging.getLogger(__name__)


class Worker:
    """One model, from the start of its load to the end of the process."""

    def __init__(self, plan: WorkerPlan) -> None:
        self.plan = plan
        self.progress = Progress(plan.weights_bytes)
        self._served: Any = None

    @property
    def served(self) -> Any:
        """What answers for the model; StillLoading until it is there."""
        if self._served is None:
            raise StillLoading("the model is still being loaded")
        return self._served

    def load(self) -> None:
        """Runs in a thread. The imports are here: the socket is there before torch is."""
        from eloquio.worker.served import Served

        self._served = Served.load(self.plan, self.progress)

    async def load_or_end(self) -> None:
        try:
            await asyncio.to_thread(self.load)
        except LoadFailed as failure:
            _end(failure)
        except Exception as error:
            logger.exception("the load failed unexpectedly")
            _end(LoadFailed("refused", f"{type(error).__name__}: {error}"))


def _end(failure: LoadFailed) -> None:
    told = {"cause": failure.cause, "message": failure.message}
    sys.stderr.write(f"{LOAD_FAILED}{json.dumps(told)}\n")
    sys.stderr.flush()
    os._exit(1)


def create_app(plan: WorkerPlan, key: str | None) -> ASGIApp:
    """`key`: the bearer key that every request has to bring, where there is one."""
    worker = Worker(plan)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        loading = asyncio.create_task(worker.load_or_end())
        yield
        loading.cancel()

    routes = _Routes(worker)
    app = Starlette(
        routes=[
            Route("/health", routes.health),
            Route("/props", routes.props),
            Route("/v1/chat/completions", routes.chat, methods=["POST"]),
            Route("/v1/chat/completions/input_tokens", routes.count, methods=["POST"]),
            Route("/v1/completions", routes.completion, methods=["POST"]),
            Route("/v1/embeddings", routes.embeddings, methods=["POST"]),
            Route("/v1/audio/transcriptions", routes.transcribe, methods=["POST"]),
            Route("/v1/audio/translations", routes.translate, methods=["POST"]),
            Route("/tokenize", routes.tokenize, methods=["POST"]),
            Route("/detokenize", routes.detokenize, methods=["POST"]),
            Route("/apply-template", routes.apply_template, methods=["POST"]),
            Route("/lora-adapters", routes.adapters, methods=["GET"]),
            Route("/lora-adapters", routes.scale_adapters, methods=["POST"]),
        ],
        lifespan=lifespan,
        exception_handlers={RequestFailed: _failed},
    )
    return app if key is None else _Locked(app, key)


class _Locked:
    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._expected = f"Bearer {key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != "/health":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                refused = RequestFailed("the key is missing or wrong")
                await JSONResponse(refused.body(), 401)(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _failed(_: Request, failure: Exception) -> Response:
    assert isinstance(failure, RequestFailed)
    return JSONResponse(failure.body(), failure.status)


class _Routes:
    """Each parses, asks what serves the model, and answers."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def health(self, _: Request) -> Response:
        try:
            _ = self._worker.served
        except StillLoading as loading:
            progress = self._worker.progress
            told = {
                "loaded_bytes": progress.loaded_bytes,
                "total_bytes": progress.total_bytes,
            }
            return JSONResponse(loading.body() | {"progress": told}, loading.status)
        return JSONResponse({"status": "ok"})

    async def props(self, _: Request) -> Response:
        return JSONResponse(self._worker.served.properties())

    async def chat(self, request: Request) -> Response:
        served = self._worker.served
        return await _streamed(served.chat(await _fields(request)))

    async def completion(self, request: Request) -> Response:
        served = self._worker.served
        return await _streamed(served.complete(await _fields(request)))

    async def count(self, request: Request) -> Response:
        served, fields = self._worker.served, await _fields(request)
        tokens = await asyncio.to_thread(served.count, fields)
        return JSONResponse({"input_tokens": tokens, "object": "response.input_tokens"})

    async def embeddings(self, request: Request) -> Response:
        return JSONResponse(await self._worker.served.embed(await _fields(request)))

    async def transcribe(self, request: Request) -> Response:
        return await self._listen(request, "transcribe")

    async def translate(self, request: Request) -> Response:
        return await self._listen(request, "translate")

    async def _listen(self, request: Request, task: str) -> Response:
        """The body is the sound as it came, in any container; the fields are in the query."""
        served = self._worker.served
        events = served.listen(await request.body(), dict(request.query_params), task)
        return await _streamed(events)

    async def tokenize(self, request: Request) -> Response:
        served, fields = self._worker.served, await _fields(request)
        return JSONResponse(await asyncio.to_thread(served.tokenize, fields))

    async def detokenize(self, request: Request) -> Response:
        served, fields = self._worker.served, await _fields(request)
        return JSONResponse(await asyncio.to_thread(served.detokenize, fields))

    async def apply_template(self, request: Request) -> Response:
        served, fields = self._worker.served, await _fields(request)
        return JSONResponse({"prompt": await asyncio.to_thread(served.prompt_text, fields)})

    async def adapters(self, _: Request) -> Response:
        return JSONResponse(self._worker.served.adapters())

    async def scale_adapters(self, _: Request) -> Response:
        raise NotHere(
            "adapters can't be scaled for all requests here; send use_adapter with a request"
        )


async def _fields(request: Request) -> dict[str, Any]:
    try:
        fields = json.loads(await request.body())
    except ValueError as error:
        raise RequestFailed(f"the body is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise RequestFailed("the body is no JSON object")
    return fields


Events = AsyncIterator[bytes]
Handler = Callable[[Request], Awaitable[Response]]


async def _streamed(events: Any) -> Response:
    """What fails before the first event has a status of its own; later it is the last event."""
    first = await anext(events)

    async def told() -> AsyncIterator[bytes]:
        async with contextlib.aclosing(events):
            yield first
            try:
                async for event in events:
                    yield event
            except RequestFailed as failure:
                yield b"data: " + json.dumps(failure.body(), separators=(",", ":")).encode()
                yield b"\n\n"
                return
            except Exception as error:
                logger.exception("an answer failed unexpectedly")
                failed = RequestFailed(f"{type(error).__name__}: {error}")
                body = failed.body()["error"] | {"code": 500, "type": "server_error"}
                yield b"data: " + json.dumps({"error": body}, separators=(",", ":")).encode()
                yield b"\n\n"
                return
            yield b"data: [DONE]\n\n"

    return StreamingResponse(told(), media_type="text/event-stream")
