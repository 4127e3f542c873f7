"""The server is ended, whatever its engines do: no process is left."""

import signal
from pathlib import Path
from typing import Any

import aiohttp

from eloquio.doctor.faults.scenario import expect, meanwhile, proves, until
from eloquio.doctor.faults.serving import studio
from eloquio.doctor.faults.studio import Studio

# The server promises five; a busy machine may need more.
_LIMIT_SECONDS = 15


async def _end(running: Studio, number: signal.Signals = signal.SIGINT) -> str:
    seconds = await running.end(number)
    expect(seconds < _LIMIT_SECONDS, f"It took {seconds:.1f} s to end.")
    await running.until_gone("The server ended and its engines didn't", seconds=3)
    left = list((running.home / "run").rglob("*"))
    expect(not left, f"It left {', '.join(path.name for path in left)}.")
    return f"ended in {seconds:.1f} s, no process left"


@proves("Ctrl-C ends the server and an engine that is ready.")
async def is_ended_while_ready(folder: Path) -> str:
    async with studio(folder, {"a": {"forks": True}}) as running:
        (await running.load("a")).require(200)
        return await _end(running)


@proves("The system's request to end ends the server and its engines.")
async def is_ended_by_the_system(folder: Path) -> str:
    async with studio(folder, {"a": {}, "b": {}}) as running:
        for model in "ab":
            (await running.load(model, keep_others=True)).require(200)
        return await _end(running, signal.SIGTERM)


@proves("Ctrl-C during a load ends the server and the engine that is starting.")
async def is_ended_while_starting(folder: Path) -> str:
    return await _end_in_load(folder, {"moves_seconds": 600})


@proves("Ctrl-C ends the server and an engine that hangs in its start and ignores signals.")
async def is_ended_while_hanging(folder: Path) -> str:
    return await _end_in_load(folder, {"hangs": True, "ignores_sigterm": True})


async def _end_in_load(folder: Path, behaviour: dict[str, Any]) -> str:
    async with (
        studio(folder, {"a": behaviour}) as running,
        meanwhile(running.load("a")) as loading,
    ):
        await running.until_started("a")
        seen = await _end(running)
        # Who waited may be told, or may find the connection closed.
        if loading.done() and loading.exception() is None:
            expect(loading.result().status in (499, 503), f"Told {loading.result().status}.")
        return seen


@proves("Ctrl-C during an answer ends it with one error, and the server with its engine.")
async def is_ended_while_answering(folder: Path) -> str:
    async with studio(folder, {"a": {"repeats": 10_000, "pause_seconds": 0.05}}) as running:
        (await running.load("a")).require(200)
        async with running.stream("a") as stream:
            await stream.read(tokens=3)
            running.process.send_signal(signal.SIGINT)
            (await stream.read()).failure("shutting_down")
        return f"one shutting_down; {await _end(running)}"


@proves("Ctrl-C while an unload waits for a stubborn engine ends all of it.")
async def is_ended_while_unloading(folder: Path) -> str:
    async with studio(folder, {"a": {"ignores_sigterm": True}}) as running:
        (await running.load("a")).require(200)
        async with meanwhile(running.unload("a")):
            await running.until_state("a", "stopping")
            return await _end(running)


@proves("Ctrl-C while an engine starts again after a crash ends that one too.")
async def is_ended_while_restarting(folder: Path) -> str:
    async with studio(folder, {"a": {"then": "kill"}}) as running:
        (await running.load("a")).require(200)
        running.behave("a", moves_seconds=600)
        (await running.chat("a")).require(502, "engine_crashed")
        await running.until_started("a", 2)
        return await _end(running)


@proves("A second Ctrl-C, from an impatient person, leaves nothing behind either.")
async def is_ended_twice(folder: Path) -> str:
    async with studio(folder, {"a": {"ignores_sigterm": True}}) as running:
        (await running.load("a")).require(200)
        running.process.send_signal(signal.SIGINT)

        async def is_ending() -> bool:
            try:
                engine = await running.engine("a")
            except aiohttp.ClientError:
                return True
            return engine is None or engine["status"]["state"] == "stopping"

        await until(is_ending, "The server doesn't begin to end")
        seconds = await running.end(signal.SIGINT)
        await running.until_gone("The engine outlived the server", seconds=3)
        return f"ended in {seconds:.1f} s, no process left"
