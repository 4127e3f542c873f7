"""What Eloquio adds to its engine, measured beside the engine alone in one run.

Both ways are asked in turns, by the same client, for the same replies of the same engine: a random
model of one layer, whose tokens come about as fast as any engine's. Figures are medians over the
rounds; a ratio is taken within each round, so that a machine that slows down slows both.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import httpx2 as httpx
import psutil

from eloquio.setup.checkout import Checkout
from fixtures.running import RunningServer, serving
from fixtures.tiny_engine import write_tiny_model

STREAMS = 8
TOKENS = 400
ROUNDS = 7
FIRST_TOKENS = 60
MODEL = "tiny"


@dataclass(frozen=True)
class Way:
    """One way to the engine: through Eloquio, or straight to its socket."""

    name: str
    session: aiohttp.ClientSession


@dataclass(frozen=True)
class Throughput:
    chunks_per_second: float
    backend_cpu_microseconds_per_chunk: float


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--streams", type=int, default=STREAMS)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        home = Path(folder)
        start_seconds = statistics.median(_start_seconds(home) for _ in range(5))
        write_tiny_model(Checkout.here().kept_model, home / "models" / "tiny.gguf")
        with serving(home, ELOQUIO_LOAD_ON_START="false") as server:
            unloaded_bytes = psutil.Process(server.process.pid).memory_info().rss
            _load(server, arguments.streams)
            rounds = asyncio.run(_measure(server, arguments.rounds, arguments.streams))
            loaded_bytes = psutil.Process(server.process.pid).memory_info().rss
    print(f"{'start to /health':44} {start_seconds:8.2f} s")
    print(f"{'backend, no model loaded':44} {unloaded_bytes / 1e6:8.0f} MB")
    print(f"{'backend, after the streams':44} {loaded_bytes / 1e6:8.0f} MB")
    for line in rounds:
        print(line)


def _start_seconds(home: Path) -> float:
    """From the start of the process to its first answer, without a model to load."""
    started = time.perf_counter()
    with serving(home, ELOQUIO_LOAD_ON_START="false") as server:
        httpx.get(f"{server.url}/health").raise_for_status()
        return time.perf_counter() - started


def _load(server: RunningServer, streams: int) -> None:
    options = {
        "model_path": MODEL,
        "n_parallel": streams,
        "max_seq_length": 8192,
        # One core for the engine: the other is for the client and the backend.
        "extra_args": ["--threads", "1"],
    }
    httpx.post(f"{server.url}/load", json=options, timeout=60).raise_for_status()


async def _measure(server: RunningServer, rounds: int, streams: int) -> list[str]:
    [socket] = (server.home / "run").glob("*/*.sock")
    connector = aiohttp.UnixConnector(str(socket), force_close=True)
    async with (
        aiohttp.ClientSession("http://engine", connector=connector) as direct_session,
        aiohttp.ClientSession(server.url) as through_session,
    ):
        direct, through = Way("direct", direct_session), Way("through", through_session)
        backend = psutil.Process(server.process.pid)
        for way in (direct, through):
            await _throughput(way, backend, streams)
        pairs = [
            (
                await _throughput(direct, backend, streams),
                await _throughput(through, backend, streams),
            )
            for _ in range(rounds)
        ]
        alone = [
            (await _throughput(direct, backend, 1), await _throughput(through, backend, 1))
            for _ in range(rounds)
        ]
        firsts = [
            (await _first_token_seconds(direct), await _first_token_seconds(through))
            for _ in range(FIRST_TOKENS)
        ]
    return [*_told(pairs, streams), *_told(alone, 1), *_told_firsts(firsts)]


async def _throughput(way: Way, backend: psutil.Process, streams: int) -> Throughput:
    before, started = backend.cpu_times(), time.perf_counter()
    counts = await asyncio.gather(*(_count_chunks(way, TOKENS) for _ in range(streams)))
    seconds, after = time.perf_counter() - started, backend.cpu_times()
    cpu_seconds = after.user + after.system - before.user - before.system
    chunks = sum(counts)
    return Throughput(chunks / seconds, cpu_seconds / chunks * 1e6)


async def _count_chunks(way: Way, tokens: int) -> int:
    count = 0
    async for chunk in _stream(way, tokens):
        count += chunk.count(b"data: ")
    return count


async def _first_token_seconds(way: Way) -> float:
    started = time.perf_counter()
    first = 0.0
    async for _ in _stream(way, 2):
        first = first or time.perf_counter() - started
    return first


async def _stream(way: Way, tokens: int) -> AsyncIterator[bytes]:
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


def _told(pairs: list[tuple[Throughput, Throughput]], streams: int) -> Iterator[str]:
    direct = statistics.median(pair[0].chunks_per_second for pair in pairs)
    through = statistics.median(pair[1].chunks_per_second for pair in pairs)
    ratio = statistics.median(b.chunks_per_second / a.chunks_per_second for a, b in pairs)
    cost = statistics.median(pair[1].backend_cpu_microseconds_per_chunk for pair in pairs)
    name = f"{streams} streams" if streams > 1 else "1 stream"
    yield f"{name + ', direct':44} {direct:8.0f} chunks/s"
    yield f"{name + ', through Eloquio':44} {through:8.0f} chunks/s"
    yield f"{name + ', through / direct':44} {ratio:8.3f}"
    yield f"{name + ', CPU of the backend per chunk':44} {cost:8.1f} µs"


def _told_firsts(firsts: list[tuple[float, float]]) -> Iterator[str]:
    direct = statistics.median(pair[0] for pair in firsts) * 1e3
    added = statistics.median(b - a for a, b in firsts) * 1e3
    yield f"{'first token, direct':44} {direct:8.2f} ms"
    yield f"{'first token, added by Eloquio':44} {added:8.2f} ms"


if __name__ == "__main__":
    main()
