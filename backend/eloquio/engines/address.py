"""Where an engine listens: a socket in a private folder, or loopback with a key."""

import asyncio
import secrets
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil

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


async def is_listened_by(address: Address, pid: int) -> bool:
    """Whether it is process `pid`, or a descendant, that answers at `address`, and nobody else.

    Nobody else can make a socket in our private folder; on a port, anybody can.
    """
    if address.socket_path is not None:
        return await asyncio.to_thread(address.socket_path.is_socket)
    return await asyncio.to_thread(_is_port_of, address.port, pid)


def _is_port_of(port: int, pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        family = {process.pid, *(child.pid for child in process.children(recursive=True))}
        listeners = _listeners(port, family)
    except psutil.Error:
        return False
    # The system hands a connection to the closest address. Several that allow it (llama-server
    # does) can share one, and then share the connections: one stranger among them is too many.
    closest = listeners.get("127.0.0.1") or [pid for pids in listeners.values() for pid in pids]
    return bool(closest) and all(pid in family for pid in closest)


def _listeners(port: int, family: set[int]) -> dict[str, list[int | None]]:
    """Who listens on the port so that loopback reaches it, by address; None is another user's."""
    found: dict[str, list[int | None]] = {}
    for ip, listening_port, pid in _listening(family):
        if listening_port == port and ip in ("127.0.0.1", "0.0.0.0", "::"):
            found.setdefault(ip, []).append(pid)
    return found


def _listening(family: set[int]) -> list[tuple[str, int, int | None]]:
    try:
        everywhere = psutil.net_connections(kind="tcp")
        return [(*c.laddr, c.pid) for c in everywhere if c.status == psutil.CONN_LISTEN]
    except psutil.AccessDenied:
        # macOS tells that of everybody's processes only to its administrator.
        found: list[tuple[str, int, int | None]] = []
        for pid in family:
            with suppress(psutil.Error):
                connections = psutil.Process(pid).net_connections(kind="tcp")
                found += [(*c.laddr, pid) for c in connections if c.status == psutil.CONN_LISTEN]
        return found
