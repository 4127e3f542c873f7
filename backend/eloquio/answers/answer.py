"""What a request gets that an engine answers: ended when its client leaves, or it is cancelled."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

import structlog
from fastapi import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from eloquio import sse
from eloquio.answers.cancels import Cancels
from eloquio.answers.exchange import Exchange, RequestLog
from eloquio.errors import EloquioError, RequestCancelled, Unexpected

_PHASES = (
    ("queue", "queue_ms"),
    ("media", "media_ms"),
    ("prefill", "prefill_ms"),
    ("first", "first_token_ms"),
    ("decode", "decode_ms"),
)

logger = structlog.get_logger(__name__)

ErrorEvent = Callable[[EloquioError], bytes]


def error_event(error: EloquioError) -> bytes:
    """The last event of a stream that came to no end of its own."""
    return sse.event(error.body())


class Answer(Response):
    """Carries out its request's work, of which there is one task, and says what became of it."""

    def __init__(self, request: Request, exchange: Exchange) -> None:
        self._exchange = exchange
        self._request_log: RequestLog = request.app.state.request_log
        self._cancels: Cancels = request.app.state.cancels
        self._is_cancelled = False
        self._has_begun = False
        self.background = None
        self.status_code = 200

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.create_task(self._work(send))
        gone = asyncio.create_task(_client_gone(receive))

        def cancel() -> None:
            self._is_cancelled = True
            work.cancel()

        self._request_log.begin(self._exchange)
        try:
            with self._cancels.over(self._exchange.cancel_id, cancel):
                try:
                    await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    gone.cancel()
                    work.cancel()
                    await asyncio.wait({work})
            await self._tell_end(work, send)
        finally:
            self._exchange.ends("failed")
            self._request_log.end(self._exchange)

    async def _tell_end(self, work: asyncio.Task[None], send: Send) -> None:
        error: BaseException | None
        if not work.cancelled():
            error = work.exception()
        elif self._is_cancelled:
            error = RequestCancelled("The request was cancelled.")
        else:
            self._exchange.ends("client_left")
            return
        if error is None:
            self._exchange.ends("completed")
            return
        is_ours = isinstance(error, EloquioError)
        told = error if isinstance(error, EloquioError) else Unexpected()
        self._exchange.ends("cancelled" if isinstance(told, RequestCancelled) else "failed", told)
        if not self._has_begun:
            self._exchange.http_status = told.status
            raise error
        if not is_ours:
            logger.error("an answer failed unexpectedly", exc_info=error)
        await self._send_last_event(told, send)

    async def _work(self, send: Send) -> None:
        raise NotImplementedError

    async def _send_last_event(self, error: EloquioError, send: Send) -> None:
        raise NotImplementedError

    def _start(self, headers: Mapping[str, str]) -> dict[str, Any]:
        self._has_begun = True
        self._exchange.http_status = 200
        phases = self._exchange.timeline.phases()
        timing = ", ".join(
            f"{name};dur={phases[phase]}" for name, phase in _PHASES if phases[phase] is not None
        )
        if timing:
            headers = {**headers, "server-timing": timing}
        return {
            "type": "http.response.start",
            "status": 200,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }


class StreamedAnswer(Answer):
    """Sends blocks of events as they come.

    It begins with the first of them, so that what fails before has its own status; or with a
    heartbeat, where that takes long.
    """

    def __init__(
        self,
        request: Request,
        exchange: Exchange,
        events: AsyncGenerator[bytes],
        *,
        end: bytes = sse.DONE,
        error_event: ErrorEvent = error_event,
    ) -> None:
        """`end` follows the last of the events, where nothing failed."""
        super().__init__(request, exchange)
        self._events = events
        self._end = end
        self._error_event = error_event
        self._sent_at = time.monotonic()

    async def _work(self, send: Send) -> None:
        heart = asyncio.create_task(self._beat(send))
        try:
            async with aclosing(self._events) as events:
                async for block in events:
                    await self._send(send, block)
            await self._send(send, self._end)
            await send({"type": "http.response.body", "body": b""})
        finally:
            heart.cancel()

    async def _send(self, send: Send, block: bytes) -> None:
        if not self._has_begun:
            await send(self._start(sse.HEADERS))
        self._sent_at = time.monotonic()
        await send({"type": "http.response.body", "body": block, "more_body": True})

    async def _beat(self, send: Send) -> None:
        while True:
            silent_seconds = time.monotonic() - self._sent_at
            await asyncio.sleep(max(0.1, sse.HEARTBEAT_SECONDS - silent_seconds))
            if time.monotonic() - self._sent_at >= sse.HEARTBEAT_SECONDS:
                await self._send(send, sse.HEARTBEAT)

    async def _send_last_event(self, error: EloquioError, send: Send) -> None:
        await send({"type": "http.response.body", "body": self._error_event(error)})


class WholeAnswer(Answer):
    """Sends one JSON body, once it is made."""

    def __init__(
        self, request: Request, exchange: Exchange, reply: Callable[[], Awaitable[bytes]]
    ) -> None:
        super().__init__(request, exchange)
        self._reply = reply

    async def _work(self, send: Send) -> None:
        body = await self._reply()
        self._exchange.timeline.ends()
        headers = {"content-type": "application/json", "content-length": str(len(body))}
        await send(self._start(headers))
        await send({"type": "http.response.body", "body": body})

    async def _send_last_event(self, error: EloquioError, send: Send) -> None:
        """Nothing: the body was on its way, whole."""


async def _client_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
