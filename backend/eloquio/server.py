"""Runs the web server: takes the port, says when it is there, and ends it all in good time."""

import errno
import gc
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import uvicorn
from rich.console import Console

from eloquio.addresses import page_address
from eloquio.app import create_app, end_answers
from eloquio.auth.keys import known_key, required_key
from eloquio.connections import connections
from eloquio.logging import start_logs
from eloquio.settings import Settings

# Streams under way are cut after this; stopping the engines has to fit into 5 s with it.
GRACE_SECONDS = 1


@dataclass
class CannotListen(Exception):
    """The port is taken, or the address isn't this machine's."""

    message: str
    next_step: str
    is_ours: bool = False
    """Whether it is an Eloquio that holds the port."""


def serve(settings: Settings, *, open_browser: bool) -> int:
    """Serve until a signal ends it, and return the exit status. CannotListen if it can't listen."""
    listener = listen(settings.host, settings.port)
    logs = start_logs(settings)
    try:
        had_key = known_key(settings) is not None
        key = required_key(settings)
        address = page_address(settings.host, listener.getsockname()[1])

        def announce() -> None:
            _announce(address, new_key=None if had_key else key, asks_for_key=key is not None)
            if open_browser:
                threading.Thread(target=_open_browser, args=(address,), daemon=True).start()

        app = create_app(settings)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            http=connections(settings.stalled_reader_seconds),
            ws="none",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        server = _Server(
            config,
            on_listening=announce,
            # Before the open replies are cut: each then ends with the error that says why.
            on_ending=lambda: end_answers(app),
            on_ended=logs.close,
        )
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        return 130
    finally:
        listener.close()
        logs.close()
    if server.started:
        return 0
    if (error := getattr(app.state, "startup_error", None)) is not None:
        sys.stderr.write("\n".join(filter(None, [error.message, error.next_step])) + "\n")
    return 3


class _Server(uvicorn.Server):
    """uvicorn's, that tells when it listens, begins to end, and has ended."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        on_listening: Callable[[], None],
        on_ending: Callable[[], Awaitable[None]],
        on_ended: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._on_listening = on_listening
        self._on_ending = on_ending
        self._on_ended = on_ended

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What there is now stays, and needs no look any more.
        gc.freeze()
        gc.enable()
        if self.started:
            self._on_listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._on_ending()
        await super().shutdown(sockets)
        # Here and not after `run`: it raises the signal anew, which may be the end of us.
        self._on_ended()


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the address; taken early, so that nothing is started in vain."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise CannotListen(f"{host} is no address.", "Choose another with --host.") from error
    listener = socket.socket(family, kind, protocol)
    if sys.platform != "win32":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        # Without this a second server could bind the port too, and only fail to listen later.
        listener.listen()
    except OSError as error:
        listener.close()
        raise _why_not(error, host, port) from error
    return listener


def _is_eloquio(address: str) -> bool:
    """Whether the server at this address says that it is an Eloquio."""
    import httpx2 as httpx

    try:
        answer = httpx.get(f"{address}/health", timeout=2, trust_env=False)
        if answer.status_code == 401:
            return "eloquio" in answer.headers.get("www-authenticate", "")
        return bool(answer.json().get("service") == "eloquio")
    except (httpx.HTTPError, ValueError, AttributeError):
        return False


def _why_not(error: OSError, host: str, port: int) -> CannotListen:
    if error.errno == errno.EADDRINUSE:
        address = page_address(host, port)
        if _is_eloquio(address):
            sentence = f"Eloquio is running already, at {address}."
            return CannotListen(sentence, "Open that, or end it first.", is_ours=True)
        return CannotListen(
            f"Port {port} is taken by another program.",
            f"End that one, or choose another port: eloquio serve --port {port + 1}",
        )
    if error.errno == errno.EACCES:
        sentence = f"Port {port} may be used by the administrator only."
        return CannotListen(sentence, "Choose one above 1023.")
    if error.errno == errno.EADDRNOTAVAIL:
        return CannotListen(f"{host} is no address of this machine.", "Choose another with --host.")
    sentence = f"Can't listen at {host}, port {port}: {error.strerror}."
    return CannotListen(sentence, "Choose others with --host and --port.")


def _open_browser(address: str) -> None:
    # Only here: most servers are started without.
    import webbrowser

    webbrowser.open(address)


def _announce(address: str, *, new_key: str | None, asks_for_key: bool) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"Eloquio is at [link={address}]{address}[/link]")
    if new_key is not None:
        console.print(f"It asks for this key, which `eloquio key` shows again: {new_key}")
    elif asks_for_key:
        console.print("It asks for its key, which `eloquio key` prints.")
