"""A small application behind the guard, that remembers what reached it."""

import pytest
from fastapi import FastAPI, Request, WebSocket
from fastapi.responses import HTMLResponse, StreamingResponse
from structlog.testing import capture_logs

from eloquio.guard import Guard, HostPolicy
from fixtures.asgi import ask


class Inner:
    """The application, and the paths of the requests that came through to it."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.app = FastAPI(docs_url=None, redoc_url=None)
        self.app.websocket("/events")(self._socket)
        self.app.get("/stream")(self._stream)
        self.app.get("/broken")(self._broken)
        self.app.get("/broken-late")(self._broken_late)
        self.app.get("/from-an-engine")(self._from_an_engine)
        self.app.api_route("/{path:path}", methods=["GET", "HEAD", "POST", "OPTIONS"])(self._page)

    async def _page(self, request: Request) -> HTMLResponse:
        self.reached.append(request.url.path)
        return HTMLResponse(request.state.request_id)

    async def _stream(self) -> StreamingResponse:
        return StreamingResponse(b"data: %d\n\n" % n for n in range(3))

    async def _broken(self) -> None:
        raise RuntimeError("the secret cause")

    async def _broken_late(self) -> StreamingResponse:
        def chunks():
            yield b"first"
            raise RuntimeError("the secret cause")

        return StreamingResponse(chunks())

    async def _from_an_engine(self) -> HTMLResponse:
        headers = {"access-control-allow-origin": "*", "server-timing": "decode;dur=3"}
        return HTMLResponse("{}", headers=headers)

    async def _socket(self, socket: WebSocket) -> None:
        self.reached.append(socket.url.path)
        await socket.accept()
        await socket.close()


@pytest.fixture
def inner() -> Inner:
    return Inner()


@pytest.fixture
def guarded(inner: Inner) -> FastAPI:
    inner.app.add_middleware(Guard, hosts=HostPolicy(["studio.example", "My-Box"]))
    return inner.app


@pytest.fixture(autouse=True)
def log_lines():
    with capture_logs() as lines:
        yield lines


@pytest.fixture
def status_of(guarded: Guard):
    """The status that a request is answered with."""
    return lambda path="/", **request: ask(guarded, path, **request).status
