"""The worker beside the library it is made of: one stream, and several at once.

Plain `model.generate` is the yardstick for one stream, transformers' own `serve
--continuous-batching` for several. All hold SmolLM2 135M in float32 on as many threads as torch
takes by itself, answer the same questions greedily, and are asked in turns. While one is measured
the others are stopped, so that none waits for a processor that another keeps awake.
"""

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from types import TracebackType

import aiohttp
import httpx2 as httpx
import psutil

from bench.figures import Figure
from bench.ways import session_of
from eloquio.server import listen
from fixtures import worker_folders
from fixtures.running import serving

TOKENS = 100
MODEL = "smol"
_SERVE = "from transformers.cli.transformers import main; main()"
_LOAD_SECONDS = 300


class Generate:
    """A process that says how long `model.generate` takes, each time it is asked."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [worker_folders.WORKER_PYTHON, "-m", "bench.generate", folder, str(TOKENS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(),
        )

    def seconds(self, question: str) -> float:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{question}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def __enter__(self) -> "Generate":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()


def measure(home: Path, rounds: int, streams: int, serve_python: Path) -> Iterator[Figure]:
    folder = worker_folders.smollm2()
    shelf = home / "shelf"
    shutil.copytree(folder, shelf / MODEL)
    with serving(home, "--model-dir", str(shelf), "--no-load-on-start") as server:
        options = {"model_path": MODEL, "n_parallel": streams, "max_seq_length": 512}
        loaded = httpx.post(f"{server.url}/load", json=options, timeout=_LOAD_SECONDS)
        loaded.raise_for_status()
        assert loaded.json()["dtype"] == "float32", "the yardsticks hold it in float32"
        ours = psutil.Process(server.process.pid)
        with Generate(folder) as generate:
            alone = asyncio.run(_alone(server.url, ours, generate, rounds))
        yield from _told("1 stream", "model.generate", alone)
        together = asyncio.run(_together(server.url, ours, folder, rounds, streams, serve_python))
        yield from _told(f"{streams} streams", "transformers serve", together)


async def _alone(
    url: str, ours: psutil.Process, generate: Generate, rounds: int
) -> list[tuple[float, float]]:
    """Tokens a second in each round: by the library, by the worker."""
    library = psutil.Process(generate.process.pid)
    found = []
    async with session_of(url) as session:
        for number in range(rounds + 1):
            with _only(library, ours):
                theirs = await asyncio.to_thread(generate.seconds, _question(number))
            with _only(ours, library):
                seconds = await _answer_seconds(session, MODEL, [_question(number)])
            found.append((TOKENS / theirs, TOKENS / seconds))
    return found[1:]


async def _together(
    url: str, ours: psutil.Process, folder: Path, rounds: int, streams: int, python: Path
) -> list[tuple[float, float]]:
    found = []
    async with (
        session_of(url) as session,
        _library_server(folder, python) as (library, other),
    ):
        for number in range(rounds + 1):
            questions = [_question(number * streams + each) for each in range(streams)]
            with _only(other, ours):
                theirs = await _answer_seconds(library, str(folder), questions)
            with _only(ours, other):
                seconds = await _answer_seconds(session, MODEL, questions)
            found.append((streams * TOKENS / theirs, streams * TOKENS / seconds))
    return found[1:]


@asynccontextmanager
async def _library_server(
    folder: Path, python: Path
) -> AsyncIterator[tuple[aiohttp.ClientSession, psutil.Process]]:
    with closing(listen("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    options = ["--continuous-batching", "--device", "cpu", "--dtype", "float32", "--port", port]
    command = [str(python), "-c", _SERVE, "serve", "--log-level", "error", *options]
    process = await asyncio.create_subprocess_exec(
        *command, env=_environment(), stdout=subprocess.DEVNULL
    )
    try:
        async with session_of(f"http://127.0.0.1:{port}") as session:
            async with asyncio.timeout(_LOAD_SECONDS):
                while not await _listens(session):
                    if process.returncode is not None:
                        raise SystemExit(
                            f"`transformers serve` doesn't run under {python}: name a Python that"
                            " has transformers[serving] by --serve-python."
                        )
                    await asyncio.sleep(0.5)
            await _answer_seconds(session, str(folder), [_question(0)])
            yield session, psutil.Process(process.pid)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _listens(session: aiohttp.ClientSession) -> bool:
    try:
        async with session.get("/health") as reply:
            return reply.status == 200
    except aiohttp.ClientConnectionError:
        return False


async def _answer_seconds(
    session: aiohttp.ClientSession, model: str, questions: Sequence[str]
) -> float:
    """How long all of them take together. Each has to be answered with all its tokens."""
    started = time.perf_counter()
    reasons = await asyncio.gather(*(_end(session, model, question) for question in questions))
    seconds = time.perf_counter() - started
    assert set(reasons) == {"length"}, f"some answers ended early: {reasons}"
    return seconds


async def _end(session: aiohttp.ClientSession, model: str, question: str) -> str | None:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": question}],
        "stream": True,
        "max_tokens": TOKENS,
        "temperature": 0,
    }
    reason = None
    async with session.post("/v1/chat/completions", json=body) as reply:
        reply.raise_for_status()
        async for line in reply.content:
            if line.startswith(b"data: {"):
                for choice in json.loads(line[6:]).get("choices") or ():
                    reason = choice.get("finish_reason") or reason
    return reason


@contextmanager
def _only(running: psutil.Process, stopped: psutil.Process) -> Iterator[None]:
    family = [stopped, *stopped.children(recursive=True)]
    for process in family:
        process.suspend()
    try:
        yield
    finally:
        for process in family:
            process.resume()


def _question(number: int) -> str:
    return f"Write a very long story about {number + 2} foxes in a deep forest."


def _environment() -> dict[str, str]:
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root / "backend"), str(root / "tests")])
    return os.environ | {"PYTHONPATH": paths, "HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def _told(name: str, library: str, found: Sequence[tuple[float, float]]) -> Iterator[Figure]:
    theirs, ours = zip(*found, strict=True)
    yield Figure(f"{name}, {library}", statistics.median(theirs), "tokens/s", 1)
    yield Figure(f"{name}, the worker", statistics.median(ours), "tokens/s", 1)
    ratio = statistics.median(mine / other for other, mine in found)
    yield Figure(f"{name}, the worker / {library}", ratio, digits=3, at_least=0.9)
