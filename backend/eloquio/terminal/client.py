"""Speaks to a running Eloquio over HTTP, for the commands."""

import json
import ssl
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx

from eloquio.addresses import page_address
from eloquio.auth.keys import known_key
from eloquio.settings import Settings

Json = dict[str, Any]

# Loads and answers take as long as they take; whoever waits can press Ctrl-C.
_TIMEOUT = httpx.Timeout(None, connect=5.0)


@dataclass
class Refused(Exception):
    """The server's own error: what happened, an engine's last words, what to do."""

    message: str
    evidence: str | None = None
    next_step: str | None = None
    code: str | None = None


class Client:
    """Every method raises Refused with the server's words, or with ours if none is running."""

    def __init__(self, settings: Settings) -> None:
        self.address = page_address(settings.host, settings.port)
        self._auth = _KeyWhenAsked(settings)

    def get(self, path: str) -> Json:
        return self._call("GET", path)

    def post(self, path: str, body: Json) -> Json:
        return self._call("POST", path, body)

    def stream(self, path: str, body: Json) -> Generator[Json, None, None]:
        """The events of a streamed reply. Closing the iterator closes the connection."""
        with (
            self._plain_words(),
            self._open() as http,
            http.stream("POST", path, json=body) as reply,
        ):
            if reply.is_error:
                reply.read()
                raise _refusal(reply)
            for line in reply.iter_lines():
                event = _event(line)
                if event is not None:
                    yield event

    def _call(self, method: str, path: str, body: Json | None = None) -> Json:
        with self._plain_words(), self._open() as http:
            return _body(http.request(method, path, json=body))

    def _open(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.address,
            auth=self._auth,
            timeout=_TIMEOUT,
            # No proxies of the environment: the server is on this machine or in this network.
            trust_env=False,
            # Reading the authorities' certificates costs 30 ms, and the address is never https.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    @contextmanager
    def _plain_words(self) -> Iterator[None]:
        try:
            yield
        except httpx.ConnectError as error:
            raise Refused(
                f"No Eloquio is running at {self.address}.",
                next_step="Start it with: eloquio serve",
                code="not_running",
            ) from error
        except httpx.TransportError as error:
            raise Refused(
                f"The connection to {self.address} broke off.",
                evidence=str(error) or type(error).__name__,
                next_step="Look whether it still runs: eloquio status",
            ) from error


class _KeyWhenAsked(httpx.Auth):
    """Sends the key only to a server that asks for one, as an Eloquio does."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        reply = yield request
        if reply.status_code != 401 or "eloquio" not in reply.headers.get("www-authenticate", ""):
            return
        key = known_key(self._settings)
        if key is not None:
            request.headers["authorization"] = f"Bearer {key}"
            yield request


def _event(line: str) -> Json | None:
    data = line.removeprefix("data:").strip()
    if data == line.strip() or data == "[DONE]":
        return None
    event: Json = json.loads(data)
    return event


def _body(reply: httpx.Response) -> Json:
    if reply.is_error:
        raise _refusal(reply)
    body: Json = reply.json()
    return body


def _refusal(reply: httpx.Response) -> Refused:
    try:
        error = reply.json()["error"]
        return refusal_of(error)
    except (ValueError, KeyError, TypeError):
        return Refused(
            f"What answers at {reply.url.host}, port {reply.url.port}, isn't an Eloquio: "
            f"it said {reply.status_code}.",
            next_step="Compare ELOQUIO_HOST and ELOQUIO_PORT with those of the server.",
        )


def refusal_of(error: Json) -> Refused:
    """The server's error object as an exception."""
    return Refused(
        str(error["message"]), error.get("evidence"), error.get("next_step"), error.get("code")
    )
