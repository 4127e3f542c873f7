"""A server with the API's shapes, small enough to misbehave on purpose, and the commands."""

import json
import socket
import threading
from types import SimpleNamespace

import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from structlog.testing import capture_logs
from typer.testing import CliRunner

from eloquio.auth.door import KeyDoor
from eloquio.cli import app as commands
from eloquio.errors import EloquioError, EngineOutOfMemory
from eloquio.guard import Guard, HostPolicy


class Studio:
    """What the server was asked, and what it is to answer."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict]] = []
        self.headers: list[dict[str, str]] = []
        self.loaded: list[str] = []
        self.asleep: list[str] = []
        self.warnings: list[str] = []
        self.load_error: EloquioError | None = None
        self.answer = ["The capital ", "is ", "Paris."]
        self.stream_error: EloquioError | None = None
        self.app = FastAPI()
        self.app.exception_handler(EloquioError)(_render)
        self.app.get("/v1/status")(self._status)
        self.app.post("/v1/load")(self._load)
        self.app.post("/v1/unload")(self._unload)
        self.app.get("/v1/load/progress")(self._progress)
        self.app.post("/v1/chat/completions")(self._chat)

    async def _note(self, request: Request) -> dict:
        self.headers.append(dict(request.headers))
        body = json.loads(await request.body() or b"{}")
        self.asked.append((request.url.path, body))
        return body

    async def _status(self, request: Request) -> dict:
        await self._note(request)
        active = self.loaded[-1] if self.loaded else None
        return {
            "active_model": active,
            "loaded": self.loaded,
            "asleep": self.asleep,
            "engines": [_engine(model, self.warnings) for model in self.loaded],
        }

    async def _load(self, request: Request) -> dict:
        model = (await self._note(request))["model_path"]
        if self.load_error:
            raise self.load_error
        status = "already_loaded" if model in self.loaded else "loaded"
        self.loaded.append(model)
        return {
            "status": status,
            "model": model,
            "load_seconds": 1.25,
            "warnings": ["The engine made a context of 2048 tokens instead of 4096."],
        }

    async def _unload(self, request: Request) -> dict:
        await self._note(request)
        if not self.loaded:
            return {"status": "not_loaded", "model": None}
        return {"status": "unloaded", "model": self.loaded.pop()}

    async def _progress(self) -> dict:
        return {"phase": "starting", "bytes": 5, "total_bytes": 10, "message": "loading"}

    async def _chat(self, request: Request) -> StreamingResponse:
        await self._note(request)

        def events():
            for piece in self.answer:
                yield _event({"choices": [{"delta": {"content": piece}}]})
            if self.stream_error:
                yield _event(self.stream_error.body())
                return
            yield _event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
            yield _event({"choices": [], "usage": {"completion_tokens": 3}})
            yield "data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")


async def _render(request: Request, error: EloquioError) -> JSONResponse:
    return JSONResponse(error.body(), error.status)


def _event(body: dict) -> str:
    return f": ping\n\ndata: {json.dumps(body)}\n\n"


def _engine(model: str, warnings: list[str]) -> dict:
    return {
        "model": model,
        "status": {"state": "ready", "pid": 1, "load_seconds": 1.0},
        "memory": {"total": 98 * 1024**2},
        "resident_bytes": 200 * 1024**2,
        "busy": 1,
        "uptime_s": 75.0,
        "loaded": {"context_length": 2048, "warnings": warnings},
    }


@pytest.fixture(autouse=True)
def quiet():
    """The server's log lines go elsewhere than the command's output, as from another process."""
    with capture_logs():
        yield


@pytest.fixture
def studio() -> Studio:
    return Studio()


@pytest.fixture
def out_of_memory() -> EloquioError:
    return EngineOutOfMemory("It needs 9 GiB.", evidence="cudaMalloc failed")


@pytest.fixture
def key() -> str | None:
    """The key that the server asks for; a test may have another opinion."""
    return None


@pytest.fixture
def server(studio, key, monkeypatch, tmp_path):
    """The studio, serving; the commands' environment points at it."""
    door = KeyDoor(key) if key else None
    studio.app.add_middleware(Guard, hosts=HostPolicy(), door=door)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(studio.app, log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    port = listener.getsockname()[1]
    monkeypatch.setenv("ELOQUIO_PORT", str(port))
    monkeypatch.setenv("ELOQUIO_HOME", str(tmp_path / "home"))
    yield SimpleNamespace(port=port, home=tmp_path / "home")
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def eloquio():
    """Run a command; its result has `exit_code`, `stdout` and `stderr`."""
    runner = CliRunner()
    return lambda *arguments, **more: runner.invoke(commands, list(arguments), **more)
