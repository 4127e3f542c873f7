"""Where an engine listens: a socket in a private folder, or loopback with a key."""

import secrets
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

import aiohttp

# sockaddr_un holds 108 bytes on Linux, 104 on macOS, each with a closing zero.
MAX_SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103


@dataclass(frozen=True)
class Address:
    """`socket_path` where there are UNIX sockets, else `port` and the key the engine asks for."""

    socket_path: Path | None = None
    port: int = 0
    key: str = ""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}" if self.socket_path is None else "http://engine"

    def client(self) -> aiohttp.ClientSession:
        """A client for this engine alone.

        It opens one connection per request: llama-server closes a connection after a streamed
        reply without saying so, and a request sent on it would be lost.
        """
        connector = (
            aiohttp.TCPConnector(force_close=True, limit=0)
            if self.socket_path is None
            else aiohttp.UnixConnector(str(self.socket_path), force_close=True, limit=0)
        )
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        # No deadline: a long prompt may take many minutes to its first token.
        return aiohttp.ClientSession(
            self.base_url,
            connector=connector,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )


def new_address(folder: Path, name: str) -> Address:
    """An address nobody listens on, in `folder` (which only this user may enter)."""
    path = folder / f"{name}.sock"
    if hasattr(socket, "AF_UNIX") and len(str(path).encode()) <= MAX_SOCKET_PATH_BYTES:
        path.unlink(missing_ok=True)
        return Address(socket_path=path)
    return Address(port=_free_port(), key=secrets.token_urlsafe(32))


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
