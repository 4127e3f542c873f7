"""The ways to an engine that are compared, and a stream by one of them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil

MODEL = "tiny"


@dataclass
class Way:
    """One way to the engine: straight to its socket, or through a process between."""

    session: aiohttp.ClientSession
    between: psutil.Process | None = None
    most_bytes: int = 0
    """The most memory that the process between was seen with."""

    def cpu_seconds(self) -> float:
        """What the process between has used so far."""
        if self.between is None:
            return 0.0
        times = self.between.cpu_times()
        return times.user + times.system


def session_of(url: str) -> aiohttp.ClientSession:
    # A connection for each request, as straight to the engine, which closes its own.
    return aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(force_close=True, limit=0))


def session_on(socket: Path) -> aiohttp.ClientSession:
    connector = aiohttp.UnixConnector(str(socket), force_close=True, limit=0)
    return aiohttp.ClientSession("http://engine", connector=connector)


async def stream(way: Way, tokens: int) -> AsyncIterator[bytes]:
    """The bytes of one streamed answer, as they come."""
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Say something."}],
        "stream": True,
        "max_tokens": tokens,
    }
    async with way.session.post("/v1/chat/completions", json=body) as reply:
        reply.raise_for_status()
        async for chunk in reply.content.iter_any():
            yield chunk
