"""How fast, how soon and how cheaply chunks come by each way to one fast engine."""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil

from bench.figures import Figure
from bench.ways import Way, session_of, session_on, stream
from eloquio.server import listen
from fixtures.running import RunningServer

TOKENS = 400
FIRST_TOKENS = 60


@dataclass(frozen=True)
class Throughput:
    chunks_per_second: float
    cpu_microseconds_per_chunk: float
    """Of the process between the client and the engine."""


async def measure(server: RunningServer, rounds: int, streams: int) -> list[Figure]:
    """So many streams at once, one alone, and first tokens: each way in turns."""
    [socket] = (server.home / "run").glob("*/*.sock")
    async with (
        session_on(socket) as direct_session,
        session_of(server.url) as through_session,
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
        async with session_of(f"http://127.0.0.1:{port}") as session:
            way = Way(session, psutil.Process(process.pid))
            async with asyncio.timeout(20):
                while not await _answers(way):
                    await asyncio.sleep(0.1)
            yield way
    finally:
        process.terminate()
        await process.wait()


async def _answers(way: Way) -> bool:
    try:
        return await _count_chunks(way, 1) > 0
    except aiohttp.ClientConnectionError:
        return False


async def _throughput(way: Way, streams: int) -> Throughput:
    before, started = way.cpu_seconds(), time.perf_counter()
    counts = await asyncio.gather(*(_count_chunks(way, TOKENS) for _ in range(streams)))
    seconds, cpu_seconds = time.perf_counter() - started, way.cpu_seconds() - before
    chunks = sum(counts)
    return Throughput(chunks / seconds, cpu_seconds / chunks * 1e6)


async def _count_chunks(way: Way, tokens: int) -> int:
    count = 0
    async for chunk in stream(way, tokens):
        count += chunk.count(b"data: ")
    return count


async def _first_token_seconds(way: Way) -> float:
    started = time.perf_counter()
    first = 0.0
    async for _ in stream(way, 2):
        first = first or time.perf_counter() - started
    return first


def _told(rounds: list[list[Throughput]], streams: int) -> Iterator[Figure]:
    direct, bare, through = zip(*rounds, strict=True)
    name = f"{streams} streams" if streams > 1 else "1 stream"
    for way, figures in (("direct", direct), ("bare forwarder", bare), ("Eloquio", through)):
        speed = statistics.median(figure.chunks_per_second for figure in figures)
        yield Figure(f"{name}, {way}", speed, "chunks/s")
    for way, figures in (("bare forwarder", bare), ("Eloquio", through)):
        ratio = statistics.median(
            ours.chunks_per_second / alone.chunks_per_second
            for ours, alone in zip(figures, direct, strict=True)
        )
        wanted = 0.97 if way == "Eloquio" and streams > 1 else None
        yield Figure(f"{name}, {way} / direct", ratio, digits=3, at_least=wanted)
    for way, figures in (("bare forwarder", bare), ("Eloquio", through)):
        cost = statistics.median(figure.cpu_microseconds_per_chunk for figure in figures)
        wanted = 40 if way == "Eloquio" else None
        yield Figure(f"{name}, CPU per chunk, {way}", cost, "µs", 1, at_most=wanted)


def _told_firsts(firsts: list[tuple[float, float]]) -> Iterator[Figure]:
    direct = statistics.median(alone for alone, _ in firsts)
    ratio = statistics.median(ours / alone for alone, ours in firsts)
    added = statistics.median(ours - alone for alone, ours in firsts)
    yield Figure("first token, direct", direct * 1e3, "ms", 2)
    yield Figure("first token, Eloquio / direct", ratio, digits=2)
    yield Figure("first token, added by Eloquio", added * 1e3, "ms", 2, at_most=3)
