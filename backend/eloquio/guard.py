"""The guard before every route, static page and document: who may ask, and what each reply carries.

A server on localhost is within reach of every web page that its person visits. So a request has to
name a host that is ours (against DNS rebinding), must not come from a page of another site, and
brings the key where one is asked for. No reply ever carries a CORS header.
"""

import ipaddress
import json
import re
import time
import uuid
from collections.abc import Awaitable, Iterable, Mapping
from typing import Protocol, Self
from urllib.parse import quote

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, reset_contextvars

from eloquio.errors import BodyTooLarge, EloquioError, HostRefused, OriginRefused, Unexpected
from eloquio.errors.anthropic import body_for, speaks_anthropic
from eloquio.settings import Settings

SIGN_IN_PATH = "/auth/session"

SECURITY_HEADERS: Mapping[bytes, bytes] = {
    b"content-security-policy": (
        b"default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        b"img-src 'self' data: blob:; media-src 'self' data: blob:; font-src 'self' data:; "
        b"connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
        b"frame-ancestors 'none'"
    ),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": (
        b"microphone=(self), camera=(self), geolocation=(), display-capture=(), usb=(), serial=(), "
        b"hid=(), midi=(), payment=(), publickey-credentials-get=(), "
        b"screen-wake-lock=()"
    ),
}

# A long conversation is some megabytes; parsing a much larger body would hold up everybody.
LARGEST_BODY_BYTES = 32_000_000

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

_API_FOLDERS = ("/v1/", "/api/", "/auth/")
_API_PATHS = frozenset(
    (
        *("/v1", "/api", "/auth", "/openapi.json", "/metrics", "/health", "/ready", "/system"),
        *("/load", "/unload", "/status", "/validate", "/load/progress"),
        *("/chat/completions", "/cancel", "/generate/stream", "/audio/generate"),
    )
)
# Asked every second or so by the page and by whoever watches the server.
_POLLED = ("/health", "/ready", "/status")

logger = structlog.get_logger(__name__)


class Door(Protocol):
    """Decides who comes in where a key is asked for."""

    def admit(
        self, *, authorization: str | None, api_key: str | None, cookie: str | None, address: str
    ) -> None:
        """Let the request pass, or raise KeyRequired, KeyRefused or TooManyAttempts."""

    def sign_in_page(self, error: EloquioError) -> bytes:
        """The HTML shown to a browser instead of the error."""


class HostPolicy:
    """The names under which this server may be asked.

    An IP literal is always one: a page can be bound to our address by its name only.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset({"localhost", *(name.lower() for name in names)})

    @classmethod
    def for_settings(cls, settings: Settings) -> Self:
        return cls((*settings.allowed_hosts, settings.host))

    def allows(self, host: str | None) -> bool:
        """Whether the value of a Host header, with or without a port, is one of ours."""
        match = _HOST.fullmatch(host or "")
        if match is None or int(match[2] or 0) > 65535:
            return False
        name = match[1].lower()
        return name in self._names or _is_ip_literal(name)


def _is_ip_literal(name: str) -> bool:
    try:
        if name.startswith("["):
            ipaddress.IPv6Address(name[1:-1])
        else:
            ipaddress.IPv4Address(name)
    except ValueError:
        return False
    return True


class Asked:
    """A request's headers, each read once. One that was sent twice reads as both, by a comma."""

    def __init__(self, scope: Scope) -> None:
        self._values: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            before = self._values.get(name)
            self._values[name] = value if before is None else before + b", " + value

    def header(self, name: bytes) -> str | None:
        value = self._values.get(name)
        return None if value is None else value.decode("latin-1")


def refuse_other_sites(scope: Scope, asked: Asked) -> None:
    """Raise OriginRefused for what a web page of another site made a browser send.

    A browser says so in Sec-Fetch-Site, which no page can forge. It leaves that out over plain
    http to another machine, and so do old browsers and scripts; then Origin tells, if there is one.
    """
    site = asked.header(b"sec-fetch-site")
    if site in ("same-origin", "none") or _is_followed_link(scope, asked):
        return
    if site is None and _is_own_origin(scope, asked):
        return
    raise OriginRefused("The request comes from a web page of another site.")


def _is_own_origin(scope: Scope, asked: Asked) -> bool:
    origin = asked.header(b"origin")
    own = f"{scope['scheme']}://{asked.header(b'host')}"
    return origin is None or origin.lower() == own.lower()


def _is_followed_link(scope: Scope, asked: Asked) -> bool:
    """Whether a person followed another site's link to one of our pages: that shows, not does."""
    return (
        scope["method"] == "GET"
        and asked.header(b"sec-fetch-mode") == "navigate"
        and asked.header(b"sec-fetch-dest") == "document"
        and not is_api_path(scope["path"])
    )


def is_api_path(path: str) -> bool:
    return path.startswith(_API_FOLDERS) or path.rstrip("/") in _API_PATHS


def bounded(receive: Receive, asked: Asked) -> Receive:
    """`receive`, raising BodyTooLarge where the body is larger than it says or than is taken."""
    length = asked.header(b"content-length") or ""
    if length.isdigit():
        _refuse_large(int(length))
        return receive
    received = 0

    async def counted() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        _refuse_large(received)
        return message

    return counted


def _refuse_large(size_bytes: int) -> None:
    if size_bytes > LARGEST_BODY_BYTES:
        raise BodyTooLarge(
            f"The request has {size_bytes / 1e6:.0f} MB or more;"
            f" at most {LARGEST_BODY_BYTES / 1e6:.0f} MB are taken."
        )


class Guard:
    """ASGI middleware that stands outermost.

    The request's id is in `scope["state"]["request_id"]`, in every log line and in the reply.
    An exception that nothing inside has answered ends here, as `unexpected_error`.
    """

    def __init__(self, app: ASGIApp, *, hosts: HostPolicy, door: Door | None = None) -> None:
        """`door` is None where no key is asked for."""
        self._app = app
        self._hosts = hosts
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._answer(scope, receive, send)
            case "websocket":
                # No route is a WebSocket, and so none gets past us unguarded.
                await send({"type": "websocket.close", "code": 1008})
            case _:
                await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = Asked(scope)
        request_id = _request_id(asked)
        scope.setdefault("state", {})["request_id"] = request_id
        reply = _Reply(send, scope["path"], request_id)
        bound = bind_contextvars(request_id=request_id)
        try:
            self._check(scope, asked)
            await self._app(scope, bounded(receive, asked), reply.send)
        except EloquioError as error:
            if reply.status:
                raise
            await self._refuse(error, scope, asked, reply)
        except Exception:
            logger.exception("a request failed unexpectedly")
            if reply.status:
                raise
            await reply.fail(Unexpected())
        finally:
            _log_access(scope, reply)
            reset_contextvars(**bound)

    def _check(self, scope: Scope, asked: Asked) -> None:
        if not self._hosts.allows(asked.header(b"host")):
            raise HostRefused("This server doesn't go by the name in the request's Host header.")
        refuse_other_sites(scope, asked)
        if self._door is None or _is_sign_in(scope):
            return
        client = scope.get("client")
        self._door.admit(
            authorization=asked.header(b"authorization"),
            api_key=asked.header(b"x-api-key"),
            cookie=asked.header(b"cookie"),
            address=client[0] if client else "",
        )

    async def _refuse(
        self, error: EloquioError, scope: Scope, asked: Asked, reply: "_Reply"
    ) -> None:
        wants_page = scope["method"] == "GET" and "text/html" in (asked.header(b"accept") or "")
        if self._door is not None and wants_page and error.status in (401, 429):
            await reply.fail(error, page=self._door.sign_in_page(error))
        else:
            await reply.fail(error)


class _Reply:
    """What is sent back: the first message gets our headers, all others pass as they are."""

    __slots__ = ("_path", "_request_id", "_send", "_started_at", "status")

    def __init__(self, send: Send, path: str, request_id: str) -> None:
        self._send = send
        self._path = path
        self._request_id = request_id
        self._started_at = time.perf_counter()
        self.status = 0
        """The reply's status; 0 until it has begun."""

    @property
    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self._started_at) * 1000

    # Not a coroutine of its own: a streamed chunk costs one comparison more, not one frame more.
    def send(self, message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": self._headers(message.get("headers", ()))}
        return self._send(message)

    async def fail(self, error: EloquioError, *, page: bytes | None = None) -> None:
        told = body_for(self._path, error, self._request_id)
        body = json.dumps(told).encode() if page is None else page
        headers = [
            (b"content-type", b"application/json" if page is None else b"text/html; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        if page is not None:
            headers.append(SIGN_IN_REFERRER)
        if error.status == 401:
            headers.append((b"www-authenticate", b'Bearer realm="eloquio"'))
        if error.retry_after_seconds is not None:
            headers.append((b"retry-after", str(error.retry_after_seconds).encode()))
        await self.send({"type": "http.response.start", "status": error.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    def _headers(self, own: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """The reply's own headers and, where it has none of that name, ours."""
        headers = [header for header in own if not header[0].lower().startswith(b"access-control-")]
        present = {name.lower() for name, _ in headers}
        ours = {
            **SECURITY_HEADERS,
            # A browser that kept the page would show it signed out, and after an update.
            b"cache-control": b"no-cache",
            b"x-request-id": self._request_id.encode(),
            b"server-timing": b"app;dur=%.1f" % self.elapsed_ms,
        }
        if speaks_anthropic(self._path):
            # Where its clients look for it.
            ours[b"request-id"] = self._request_id.encode()
        headers += [header for header in ours.items() if header[0] not in present]
        return headers


# With no-referrer a browser would call the form's origin null, and be refused by us.
SIGN_IN_REFERRER = (b"referrer-policy", b"same-origin")


def _request_id(asked: Asked) -> str:
    given = asked.header(b"x-request-id")
    return given if given and _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def _is_sign_in(scope: Scope) -> bool:
    return bool(scope["method"] == "POST" and scope["path"] == SIGN_IN_PATH)


def _log_access(scope: Scope, reply: _Reply) -> None:
    path = scope["path"]
    if reply.status < 400 and path.endswith(_POLLED):
        return
    # Quoted, since a terminal obeys what control characters in a path would tell it.
    logger.info(
        "request",
        method=scope["method"],
        path=quote(path),
        status=reply.status,
        ms=round(reply.elapsed_ms, 1),
    )
