"""Engines that die after they had served."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from eloquio.doctor.faults.scenario import expect, proves, until
from eloquio.doctor.faults.serving import studio
from eloquio.doctor.faults.studio import Json, Reply, Studio

_FIVE_TOKENS = "one two three four five"
# The first wait between two starts on request; each further one is longer.
_SHORTEST_BACK_OFF_SECONDS = 5
# Without a word it would be started once more, to hear why.
_BROKEN = {"exits": 1, "says": ["error: it is broken"]}


@proves("A crash in an answer ends it with one error, and the engine starts again by itself.")
async def crashes_in_an_answer(folder: Path) -> str:
    async with studio(folder, {"a": {"text": _FIVE_TOKENS, "then": "kill"}}) as running:
        (await running.load("a")).require(200)
        running.behave("a")
        async with running.stream("a") as stream:
            error = (await stream.read()).failure("engine_crashed")
        expect(stream.tokens == 5, f"{stream.tokens} of 5 tokens came through.")
        expect("SIGKILL" in str(error), f"The error doesn't name the signal: {error}")
        await running.until_started("a", 2)
        engine = await running.until_state("a", "ready")
        expect(engine["restarts"] == 1, f"/status tells {engine['restarts']} restarts.")
        expect("SIGKILL" in str(engine["last_error"]), "/status doesn't tell the crash.")
        (await running.chat("a")).require(200)
        return "5 tokens, one engine_crashed with SIGKILL, one restart, and the next answer"


@proves("A crash before an answer that isn't streamed is a typed error with the signal's name.")
async def crashes_before_an_answer(folder: Path) -> str:
    async with studio(folder, {"a": {"then": "crash"}}) as running:
        (await running.load("a")).require(200)
        (await running.chat("a")).require(502, "engine_crashed").says("SIGSEGV")
        return "502 engine_crashed with SIGSEGV"


@proves("An engine that dies while nobody asks is told dead at once, and serves again.")
async def crashes_while_idle(folder: Path) -> str:
    async with studio(folder, {"a": {}}) as running:
        (await running.load("a")).require(200)
        [dead] = running.alive("a")
        os.kill(dead, signal.SIGKILL)
        started = time.monotonic()

        async def is_known() -> bool:
            engine = await running.engine("a")
            return engine is None or engine["pid"] != dead

        await until(is_known, "/status still shows the dead process", seconds=10)
        seconds = time.monotonic() - started
        (await running.chat("a")).require(200)
        expect(len(running.alive("a")) == 1, "There isn't exactly one engine.")
        return f"known after {seconds:.2f} s; the next request was answered"


@proves("An engine that crashes again and again is left alone for a while, with Retry-After.")
async def crashes_again_and_again(folder: Path) -> str:
    async with studio(folder, {"a": {"then": "crash"}}) as running:
        (await running.load("a")).require(200)
        started = time.monotonic()
        replies = [await running.chat("a") for _ in range(20)]
        return _told_to_wait(running, ["a"], replies, started, first_starts=3)


@proves("A client that polls a broken model causes few starts, and is told when to come again.")
async def is_broken_and_polled(folder: Path) -> str:
    async with studio(folder, {"a": _BROKEN}) as running:
        started = time.monotonic()
        replies = [await running.chat("a") for _ in range(50)]
        return _told_to_wait(running, ["a"], replies, started, first_starts=1)


@proves("Two broken models asked for in turn are each remembered as broken.")
async def are_broken_and_polled_in_turn(folder: Path) -> str:
    async with studio(folder, {"a": _BROKEN, "b": _BROKEN}) as running:
        started = time.monotonic()
        replies = [await running.chat("ab"[number % 2]) for number in range(50)]
        return _told_to_wait(running, ["a", "b"], replies, started, first_starts=1)


def _told_to_wait(
    running: Studio,
    models: Sequence[str],
    replies: Sequence[Reply],
    started: float,
    *,
    first_starts: int,
) -> str:
    """Broken if any reply wasn't a failure with its time to wait, or if starts were many.

    `first_starts` of a model may come at once, each further one only after a back-off.
    """
    most = first_starts + int((time.monotonic() - started) / _SHORTEST_BACK_OFF_SECONDS)
    statuses = [reply.status for reply in replies]
    expect(set(statuses) <= {502, 503}, f"The answers were {sorted(set(statuses))}.")
    waits = [reply.headers.get("retry-after", "") for reply in replies if reply.status == 503]
    expect(waits, "No request was told to wait.")
    expect(all(wait.isdigit() and int(wait) for wait in waits), f"Retry-After was {set(waits)}.")
    for model in models:
        count = running.starts(model)
        expect(count <= most, f"{model} was started {count} times for {len(replies)} requests.")
    return (
        f"{sum(map(running.starts, models))} starts for {len(replies)} requests,"
        f" {len(waits)} of them 503 with Retry-After"
    )


@proves("A load by the person tries at once, however often a model has failed before.")
async def is_loaded_in_spite_of_failures(folder: Path) -> str:
    async with studio(folder, {"a": {"exits": 1}}) as running:
        for _ in range(3):
            await running.chat("a")
        (await running.chat("a")).require(503, "engine_unavailable")
        running.behave("a")
        (await running.load("a")).require(200)
        (await running.chat("a")).require(200)
        return "503 for requests, and a load that worked in the same moment"


@proves("What a crashed engine had forked ends with it.")
async def crashes_and_leaves_a_child(folder: Path) -> str:
    return await _crash_with_child(folder, "forks")


@proves("What a crashed engine had forked into a session of its own ends with it.")
async def crashes_and_leaves_a_session(folder: Path) -> str:
    return await _crash_with_child(folder, "forks_session")


async def _crash_with_child(folder: Path, how: str) -> str:
    async with studio(folder, {"a": {how: True}}) as running:
        (await running.load("a")).require(200)

        async def forked() -> list[Json]:
            return running.noted("fork", "a")

        [child] = await until(forked, "The stand-in didn't fork")
        # Its status is looked at while it lives: by then the supervisor can know its children.
        (await running.chat("a")).require(200)
        running.behave("a")
        os.kill(running.noted("start", "a")[0]["pid"], signal.SIGKILL)

        async def is_gone() -> bool:
            return child["pid"] not in running.alive("a")

        await until(is_gone, "Its child outlived it", seconds=15)
        return "the child was gone with its parent"
