"""Many streams at once, each as slow as a person reads, held by one backend."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import httpx2 as httpx
import psutil

from bench import paced
from bench.ways import Way, session_of, session_on
from eloquio.doctor.faults import gguf_file
from fixtures.running import RunningServer, serving

MODEL = "paced"


@dataclass
class Reader:
    """What one reader of a stream got."""

    numbers: list[int] = field(default_factory=list)
    lags_seconds: list[float] = field(default_factory=list)
    """How long after it left the engine each chunk was here."""
    is_done: bool = False

    def has_all(self, chunks: int) -> bool:
        """Whether every chunk came, once and in its order, and then the end."""
        return self.is_done and self.numbers == list(range(chunks))


@dataclass(frozen=True)
class Held:
    """What came of so many streams at once."""

    readers: list[Reader]
    chunks: int
    most_bytes: int
    """Of memory, of the process between; 0 where there is none."""
    cpu_microseconds_per_chunk: float

    @property
    def delivered(self) -> float:
        """The share of the streams that came whole."""
        whole = sum(reader.has_all(self.chunks) for reader in self.readers)
        return whole / len(self.readers)

    @property
    def lags_seconds(self) -> list[float]:
        return sorted(lag for reader in self.readers for lag in reader.lags_seconds)


@contextmanager
def paced_server(home: Path, streams: int) -> Iterator[RunningServer]:
    """A server whose engine has a slot for each of the streams."""
    program = paced.write(home / "engine" / "llama-server")
    model = home / "models" / f"{MODEL}.gguf"
    model.parent.mkdir(parents=True, exist_ok=True)
    gguf_file.write_model(model)
    with serving(home, LLAMA_SERVER_PATH=str(program), ELOQUIO_LOAD_ON_START="false") as server:
        load = {"model_path": MODEL, "n_parallel": streams}
        httpx.post(f"{server.url}/load", json=load, timeout=60).raise_for_status()
        yield server


@asynccontextmanager
async def paced_ways(server: RunningServer) -> AsyncIterator[tuple[Way, Way]]:
    """Straight to the engine, and through Eloquio."""
    [socket] = (server.home / "run").glob("*/*.sock")
    async with session_on(socket) as direct, session_of(server.url) as through:
        yield Way(direct), Way(through, psutil.Process(server.process.pid))


async def hold(way: Way, streams: int, chunks: int) -> Held:
    """So many streams of so many chunks, all at once."""
    readers = [Reader() for _ in range(streams)]
    before = way.cpu_seconds()
    watching = asyncio.create_task(_most_bytes(way))
    try:
        await asyncio.gather(*(_read(way.session, reader, chunks) for reader in readers))
    finally:
        watching.cancel()
    cpu_seconds = way.cpu_seconds() - before
    with suppress(asyncio.CancelledError):
        await watching
    return Held(readers, chunks, way.most_bytes, cpu_seconds / (streams * chunks) * 1e6)


async def _most_bytes(way: Way) -> None:
    while way.between is not None:
        way.most_bytes = max(way.most_bytes, way.between.memory_info().rss)
        await asyncio.sleep(0.1)


async def _read(session: aiohttp.ClientSession, reader: Reader, chunks: int) -> None:
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Go on."}],
        "stream": True,
        "max_tokens": chunks,
    }
    async with session.post("/v1/chat/completions", json=body) as reply:
        reply.raise_for_status()
        async for line in reply.content:
            if not line.startswith(b"data: "):
                continue
            if line == b"data: [DONE]\n":
                reader.is_done = True
            elif words := json.loads(line[6:])["choices"][0]["delta"].get("content"):
                number, left_at = words.split()
                reader.numbers.append(int(number))
                reader.lags_seconds.append(time.monotonic() - float(left_at))
