"""What Eloquio adds to its engine, measured beside the engine alone in one run.

Both ways are asked in turns, by the same client, for the same replies of the same engine: a random
model of one layer, whose tokens come about as fast as any engine's. Figures are medians over the
rounds; a ratio is taken within each round, so that a machine that slows down slows both.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import httpx2 as httpx
import psutil

from eloquio.server import listen
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
    """One way to the engine: straight to its socket, or through a process between."""

    session: aiohttp.ClientSession
    between: psutil.Process | None = None


@dataclass(frozen=True)
class Throughput:
    chunks_per_second: float
    cpu_microseconds_per_chunk: float
    """Of the process between the client and the engine."""


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
    print(_row("start to /health", start_seconds, "s", 2))
    print(_row("backend, no model loaded", unloaded_bytes / 1e6, "MB", 0))
    print(_row("backend, after the streams", loaded_bytes / 1e6, "MB", 0))
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
        _session(server.url) as through_session,
        _bare_forwarder(socket) as bare,
    ):
        direct = Way(direct_session)
        through = Way(through_session, psutil.Process(server.process.pid))
        ways = (direct, bare, through)
        for way in ways:
            await _throughput(way, streams)
        together = [[await _throughput(way, streams) for way in ways] for _ in range(rounds)]
        alone = [[await _throughput(way, 1) for way in ways] for _ in range(rounds)]
        firsts = [
            (await _first_token_seconds(direct), await _first_token_seconds(through))
            for _ in range(FIRST_TOKENS)
        ]
    return [*_told(together, streams), *_told(alone, 1), *_told_firsts(firsts)]


@asynccontextmanager
async def _bare_forwarder(socket: Path) -> AsyncIterator[Way]:
    """A uvicorn with nothing but the forwarding, as the yardstick of this machine."""
    with closing(listen("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "bench.bare:app", "--port", str(port)]
    quiet = ["--log-level", "error", "--no-access-log"]
    process = await asyncio.create_subprocess_exec(
        *command, *quiet, env=os.environ | {"BARE_SOCKET": str(socket)}
    )
    try:
        async with _session(f"http://127.0.0.1:{port}") as session:
            way = Way(session, psutil.Process(process.pid))
            async with asyncio.timeout(20):
                while not await _answers(way):
                    await asyncio.sleep(0.1)
            yield way
    finally:
        process.terminate()
        await process.wait()


def _session(url: str) -> aiohttp.ClientSession:
    # A connection for each request, as straight to the engine, which closes its own.
    return aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(force_close=True, limit=0))


async def _answers(way: Way) -> bool:
    try:
        return await _count_chunks(way, 1) > 0
    except aiohttp.ClientConnectionError:
        return False


async def _throughput(way: Way, streams: int) -> Throughput:
    before, started = _cpu_seconds(way), time.perf_counter()
    counts = await asyncio.gather(*(_count_chunks(way, TOKENS) for _ in range(streams)))
    seconds, cpu_seconds = time.perf_counter() - started, _cpu_seconds(way) - before
    chunks = sum(counts)
    return Throughput(chunks / seconds, cpu_seconds / chunks * 1e6)


def _cpu_seconds(way: Way) -> float:
    if way.between is None:
        return 0.0
    times = way.between.cpu_times()
    return times.user + times.system


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


def _told(rounds: list[list[Throughput]], streams: int) -> Iterator[str]:
    direct, bare, through = zip(*rounds, strict=True)
    name = f"{streams} streams" if streams > 1 else "1 stream"
    for way, figures in (("direct", direct), ("bare forwarder", bare), ("Eloquio", through)):
        speed = statistics.median(figure.chunks_per_second for figure in figures)
        yield _row(f"{name}, {way}", speed, "chunks/s", 0)
    for way, figures in (("bare forwarder", bare), ("Eloquio", through)):
        ratio = statistics.median(
            ours.chunks_per_second / alone.chunks_per_second
            for ours, alone in zip(figures, direct, strict=True)
        )
        yield _row(f"{name}, {way} / direct", ratio, "", 3)
    for way, figures in (("bare forwarder", bare), ("Eloquio", through)):
        cost = statistics.median(figure.cpu_microseconds_per_chunk for figure in figures)
        yield _row(f"{name}, CPU per chunk, {way}", cost, "µs", 1)


def _row(name: str, value: float, unit: str, digits: int) -> str:
    return f"{name:44} {value:8.{digits}f} {unit}"


def _told_firsts(firsts: list[tuple[float, float]]) -> Iterator[str]:
    yield _row("first token, direct", statistics.median(a for a, _ in firsts) * 1e3, "ms", 2)
    added = statistics.median(b - a for a, b in firsts) * 1e3
    yield _row("first token, added by Eloquio", added, "ms", 2)


if __name__ == "__main__":
    main()
