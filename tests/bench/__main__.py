"""What Eloquio adds to its engine, measured beside the engine alone in one run.

Both ways are asked in turns, by the same client, for the same replies of the same engine: a random
model of one layer, whose tokens come about as fast as any engine's. Figures are medians over the
rounds; a ratio is taken within each round, so that a machine that slows down slows both.
"""

import argparse
import asyncio
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx2 as httpx
import psutil

from bench import figures, worker
from bench.figures import Figure
from bench.held import Held, hold, paced_server, paced_ways
from bench.throughput import measure
from bench.ways import MODEL
from eloquio.setup.checkout import Checkout
from fixtures import worker_folders
from fixtures.running import RunningServer, serving
from fixtures.tiny_engine import write_tiny_model

DOCUMENT = Checkout.here().root / "docs" / "benchmarks.md"
STARTS = 5
WARM_UP_CHUNKS = 5


def main() -> None:
    options = _parse()
    found: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        home = Path(folder)
        if options.worker:
            python = options.serve_python
            parts = [worker.measure(home / "worker", options.rounds, options.streams, python)]
        else:
            parts = [
                _of_the_start(home / "empty"),
                _of_one_engine(home / "fast", options.rounds, options.streams),
                _of_many(home / "paced", options.held, options.seconds),
            ]
        for part in parts:
            for figure in part:
                print(figure.line(), flush=True)
                found.append(figure)
    if options.write:
        # Where a Python lies is of no use to who reads it elsewhere.
        told = [
            "PYTHON" if argument == str(options.serve_python) else argument
            for argument in sys.argv[1:]
        ]
        command = shlex.join(["scripts/bench", *told])
        name = "figures of the worker" if options.worker else "figures"
        figures.write(DOCUMENT, name, figures.block(found, command))


def _of_the_start(home: Path) -> Iterator[Figure]:
    home.mkdir()
    seconds = statistics.median(_start_seconds(home) for _ in range(STARTS))
    yield Figure("start to /health", seconds, "s", 2, at_most=1.5)


def _start_seconds(home: Path) -> float:
    """From the start of the process to its first answer, without a model to load."""
    started = time.perf_counter()
    with serving(home, ELOQUIO_LOAD_ON_START="false") as server:
        httpx.get(f"{server.url}/health").raise_for_status()
        return time.perf_counter() - started


def _of_one_engine(home: Path, rounds: int, streams: int) -> Iterator[Figure]:
    """Throughput, first token and cost of a chunk, beside the real engine alone."""
    write_tiny_model(Checkout.here().kept_model, home / "models" / f"{MODEL}.gguf")
    with serving(home, ELOQUIO_LOAD_ON_START="false") as server:
        yield _memory("backend, no model loaded", server, at_most=120)
        _load(server, streams)
        yield from asyncio.run(measure(server, rounds, streams))
        yield _memory("backend, after the streams", server)


def _memory(name: str, server: RunningServer, at_most: float | None = None) -> Figure:
    size_bytes = psutil.Process(server.process.pid).memory_info().rss
    return Figure(name, size_bytes / 1e6, "MB", at_most=at_most)


def _load(server: RunningServer, streams: int) -> None:
    options = {
        "model_path": MODEL,
        "n_parallel": streams,
        "max_seq_length": 8192,
        # One core for the engine: the other is for the client and the backend.
        "extra_args": ["--threads", "1"],
    }
    httpx.post(f"{server.url}/load", json=options, timeout=60).raise_for_status()


def _of_many(home: Path, streams: int, seconds: float) -> Iterator[Figure]:
    """Streams as slow as a person reads, all at once, beside the same ones straight."""
    chunks = round(seconds * 25)
    with paced_server(home, streams) as server:
        straight, held = asyncio.run(_held_both_ways(server, streams, chunks))
    name = f"{streams} held"
    delivered = held.delivered * 100
    yield Figure(f"{name}, came whole", delivered, "%", 1, at_least=100)
    for way, one in (("direct", straight), ("Eloquio", held)):
        for what, lag in _lags(one.lags_seconds):
            wanted = 250 if (way, what) == ("Eloquio", "worst lag") else None
            yield Figure(f"{name}, {what}, {way}", lag * 1e3, "ms", 1, at_most=wanted)
    yield Figure(f"{name}, CPU per chunk, Eloquio", held.cpu_microseconds_per_chunk, "µs", 1)
    yield Figure(f"{name}, most memory of the backend", held.most_bytes / 1e6, "MB", at_most=200)


async def _held_both_ways(server: RunningServer, streams: int, chunks: int) -> tuple[Held, Held]:
    async with paced_ways(server) as (direct, through):
        for way in (direct, through):
            await hold(way, streams, WARM_UP_CHUNKS)
        return await hold(direct, streams, chunks), await hold(through, streams, chunks)


def _lags(lags_seconds: Sequence[float]) -> Iterator[tuple[str, float]]:
    yield "median lag", statistics.median(lags_seconds)
    yield "worst lag", lags_seconds[-1]


def _parse() -> argparse.Namespace:
    options = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=7, help="how often each way is asked")
    options.add_argument("--streams", type=int, default=8, help="at once, as fast as they come")
    options.add_argument("--held", type=int, default=200, help="at once, of 25 chunks a second")
    options.add_argument("--seconds", type=float, default=20, help="for which those are held")
    options.add_argument(
        "--worker", action="store_true", help="the worker instead, beside transformers itself"
    )
    options.add_argument(
        "--serve-python",
        type=Path,
        default=worker_folders.WORKER_PYTHON,
        help="a Python that has transformers[serving], for --worker",
    )
    options.add_argument("--write", action="store_true", help="put the figures in the document")
    return options.parse_args()


if __name__ == "__main__":
    main()
