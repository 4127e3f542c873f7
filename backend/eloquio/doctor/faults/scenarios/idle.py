"""Models that nobody asks fall asleep, and wake when they are asked."""

import asyncio
import time
from pathlib import Path

from eloquio.doctor.faults.scenario import expect, proves, until
from eloquio.doctor.faults.serving import studio
from eloquio.doctor.faults.studio import Studio


async def _until_asleep(running: Studio, model: str) -> float:
    """Seconds until the model's process is gone, while everything is asked but a question."""
    started = time.monotonic()

    async def look() -> bool:
        for path in ("/health", "/v1/status", "/v1/models", "/ready", "/v1/load/progress"):
            await running.get(path)
        return not running.alive(model)

    await until(look, f"{model} doesn't fall asleep", seconds=20)
    return time.monotonic() - started


@proves("A model falls asleep when nobody asks it: being looked at keeps none awake.")
async def falls_asleep(folder: Path) -> str:
    async with studio(folder, {"a": {}}) as running:
        (await running.load("a", ttl_s=2)).require(200)
        engine = await running.engine("a")
        assert engine is not None
        left = engine["ttl_left_s"]
        expect(left is not None and 0 <= left <= 2, f"/status says that {left} s are left.")
        return f"asleep after {await _until_asleep(running, 'a'):.1f} s, under polls all the time"


@proves("The setting for all models puts each to sleep that brings no time of its own.")
async def falls_asleep_by_the_setting(folder: Path) -> str:
    async with studio(folder, {"a": {}, "b": {}}, {"ELOQUIO_IDLE_UNLOAD_SECONDS": 1}) as running:
        (await running.load("b", ttl_s=0)).require(200)
        (await running.load("a", keep_others=True)).require(200)
        seconds = await _until_asleep(running, "a")
        expect(running.alive("b"), "A model with ttl_s 0 fell asleep too.")
        return f"asleep after {seconds:.1f} s; the one with ttl_s 0 stayed"


@proves("A model that is answering doesn't fall asleep, however long the answer takes.")
async def stays_awake_while_it_answers(folder: Path) -> str:
    behaviour = {"text": "word", "repeats": 40, "pause_seconds": 0.15}
    async with studio(folder, {"a": behaviour}) as running:
        (await running.load("a", ttl_s=2)).require(200)
        async with running.stream("a") as stream:
            await stream.read()
        expect(stream.tokens == 40 and stream.is_done, f"{stream.tokens} of 40 tokens came.")
        expect(running.starts("a") == 1, "It was started anew.")
        await _until_asleep(running, "a")
        return "an answer of 6 s came whole with a time-out of 2 s; then it fell asleep"


@proves("A pinned model doesn't fall asleep.")
async def stays_awake_when_pinned(folder: Path) -> str:
    async with studio(folder, {"pinned": {}, "other": {}}) as running:
        (await running.load("pinned", pin=True, ttl_s=0.5)).require(200)
        (await running.load("other", ttl_s=1.5, keep_others=True)).require(200)
        await _until_asleep(running, "other")
        engine = await running.engine("pinned")
        expect(engine is not None and engine["pinned"], "/status doesn't show it as pinned.")
        expect(running.alive("pinned"), "The pinned model fell asleep.")
        return "it was there when one with three times its time-out had fallen asleep"


@proves("A model that fell asleep wakes at the next request, once and as it was.")
async def wakes_as_it_was(folder: Path) -> str:
    async with studio(folder, {"a": {}}) as running:
        (await running.load("a", ttl_s=2, max_seq_length=4096, n_parallel=2)).require(200)
        first = running.noted("start", "a")[0]["arguments"]
        await _until_asleep(running, "a")
        for reply in await asyncio.gather(*(running.chat("a") for _ in range(5))):
            reply.require(200)
        starts = running.noted("start", "a")
        expect(len(starts) == 2, f"It was started {len(starts) - 1} times to wake.")
        context = "--ctx-size"
        then, now = (told[told.index(context) + 1] for told in (first, starts[1]["arguments"]))
        expect(then == now == "4096", f"Its context was {then} and is {now}.")
        return "one start for five requests, with the same context"


@proves("A request that names no model wakes the one that fell asleep last.")
async def wakes_without_its_name(folder: Path) -> str:
    async with studio(folder, {"a": {}, "b": {}}) as running:
        (await running.load("a", ttl_s=1)).require(200)
        await _until_asleep(running, "a")
        (await running.load("b", ttl_s=1)).require(200)
        await _until_asleep(running, "b")
        reply = (await running.chat()).require(200)
        expect(reply.body["model"] == "b", f"{reply.body['model']} answered.")
        return "the one that fell asleep last answered"


@proves("A model that was unloaded by name isn't woken by a request that names none.")
async def stays_unloaded(folder: Path) -> str:
    async with studio(folder, {"a": {}}) as running:
        (await running.load("a")).require(200)
        (await running.unload("a")).require(200)
        (await running.chat()).require(409, "no_model_loaded")
        expect(running.starts("a") == 1, "It was started again.")
        return "409 no_model_loaded"


@proves("A model wakes beside the others it was loaded beside.")
async def wakes_beside_others(folder: Path) -> str:
    async with studio(folder, {"a": {}, "b": {}}) as running:
        (await running.load("b")).require(200)
        (await running.load("a", ttl_s=0.7, keep_others=True)).require(200)
        before = running.alive("b")
        await _until_asleep(running, "a")
        (await running.chat("a")).require(200)
        (await running.chat("b")).require(200)
        expect(running.alive("b") == before, "It woke in the place of the other model.")
        return "both answered, and the other one was never started anew"


@proves("Requests around the moment of falling asleep are all answered.")
async def is_asked_in_the_moment_it_falls_asleep(folder: Path) -> str:
    rounds, ttl_seconds = 40, 0.25
    async with studio(folder, {"a": {}}) as running:
        (await running.load("a", ttl_s=ttl_seconds)).require(200)
        for number in range(rounds):
            # From well before that moment to well after it, in steps that meet it closely.
            await asyncio.sleep(ttl_seconds * (0.7 + 0.6 * number / rounds))
            (await running.chat("a")).require(200)
        wakings = running.starts() - 1
        return f"{rounds} requests answered, {wakings} of them by waking"
