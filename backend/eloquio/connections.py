"""What uvicorn's connections do here beside what they do by themselves.

One whose other end takes no byte for a while is closed, so that nobody who stopped reading keeps an
engine; and a reply of unknown length to a client of HTTP/1.0, which knows no chunks, ends with the
connection.
"""

import asyncio

import structlog
from uvicorn._types import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    Scope,
)
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

logger = structlog.get_logger(__name__)


class Connection(HttpToolsProtocol):
    stalled_seconds: float
    """How long nothing may be taken of what waits to be sent."""

    _look: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_later(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._end_looking()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_looking()
        super().connection_lost(exc)

    def _look_later(self, waiting_bytes: int) -> None:
        self._end_looking()
        self._look = self.loop.call_later(
            self.stalled_seconds, self._close_if_stalled, waiting_bytes
        )

    def _close_if_stalled(self, waited_bytes: int) -> None:
        waiting_bytes = self.transport.get_write_buffer_size()
        if waiting_bytes < waited_bytes:
            # However slowly, it reads.
            self._look_later(waiting_bytes)
            return
        logger.info("reader_stalled", seconds=self.stalled_seconds, unread_bytes=waiting_bytes)
        # Not `close`, which would wait until it is read. Whatever answers is told that its client
        # has left.
        self.transport.abort()

    def _end_looking(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if cycle.scope["http_version"] == "1.0":
            app = _Unframed(cycle, app)
        super()._start_asgi_task(cycle, app)


class _Unframed:
    """Keeps uvicorn from cutting a reply of unknown length into chunks."""

    def __init__(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._cycle = cycle
        self._app = app
        self._is_unframed = False

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        async def unframed_send(message: ASGISendEvent) -> None:
            await self._prepare(message)
            await send(message)

        await self._app(scope, receive, unframed_send)

    async def _prepare(self, message: ASGISendEvent) -> None:
        cycle = self._cycle
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message.get("headers", ())}
            self._is_unframed = b"content-length" not in names
            if self._is_unframed:
                cycle.chunked_encoding = False
        elif self._is_unframed and message["type"] == "http.response.body":
            # Before and not in `send`: who sends beside us would change what is expected meanwhile.
            while cycle.flow.write_paused and not cycle.disconnected:
                await cycle.flow.drain()
            cycle.expected_content_length = len(message.get("body", b""))


def connections(stalled_seconds: float) -> type[Connection]:
    """The class of a server's connections."""
    return type("Connection", (Connection,), {"stalled_seconds": stalled_seconds})
