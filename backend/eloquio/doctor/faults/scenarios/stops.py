"""Unloads, at every moment of an engine's life."""

import asyncio
import time
from pathlib import Path

from eloquio.doctor.faults import stand_in
from eloquio.doctor.faults.scenario import expect, meanwhile, proves, until
from eloquio.doctor.faults.serving import studio
from eloquio.doctor.faults.studio import Reply, Studio

# What an unload may take, whatever the engine does.
_LIMIT_SECONDS = 15


async def _unload(running: Studio, model: str) -> Reply:
    """Unloads; Broken if that is slow, or answers before the process is gone."""
    reply = (await running.unload(model)).require(200)
    left = running.alive(model)
    expect(reply.body["status"] == "unloaded", f"The unload said {reply.body['status']}.")
    expect(reply.seconds < _LIMIT_SECONDS, f"The unload took {reply.seconds:.1f} s.")
    expect(not left, "The unload answered while the process was still there.")
    return reply


@proves("An unload answers when the process is gone, not before.")
async def is_unloaded(folder: Path) -> str:
    async with studio(folder, {"a": {"stops_late_seconds": 1}}) as running:
        (await running.load("a")).require(200)
        reply = await _unload(running, "a")
        expect(reply.seconds >= 1, f"It answered after {reply.seconds:.2f} s.")
        expect(await running.engine("a") is None, "/status still lists it.")
        return f"answered after {reply.seconds:.1f} s, when the slow end was over"


@proves("A model is started again only when its old process is gone.")
async def is_loaded_while_it_stops(folder: Path) -> str:
    async with studio(folder, {"a": {"stops_late_seconds": 2.5}}) as running:
        (await running.load("a")).require(200)
        old = running.alive("a")
        async with meanwhile(running.unload("a")):
            await running.until_state("a", "stopping")
            async with meanwhile(running.load("a")) as loading:
                await running.until_started("a", 2)
                expect(not set(old) & set(running.alive("a")), "Both processes were there.")
                (await loading).require(200)
        return "the new process came after the old one's end"


@proves("An engine that ignores the request to end is killed in good time, and the log says so.")
async def ignores_the_request_to_end(folder: Path) -> str:
    async with studio(folder, {"a": {"ignores_sigterm": True}}) as running:
        (await running.load("a")).require(200)
        reply = await _unload(running, "a")

        async def is_told() -> bool:
            return "SIGKILL" in running.log()

        await until(is_told, "The log doesn't say that it was killed", seconds=5)
        return f"gone after {reply.seconds:.1f} s, as the log says by SIGKILL"


@proves("An unload ends what the engine has forked.")
async def has_forked(folder: Path) -> str:
    return await _unload_with_child(folder, "forks")


@proves("An unload ends what the engine has forked into a session of its own.")
async def has_forked_a_session(folder: Path) -> str:
    return await _unload_with_child(folder, "forks_session")


async def _unload_with_child(folder: Path, how: str) -> str:
    async with studio(folder, {"a": {how: True}}) as running:
        (await running.load("a")).require(200)

        async def is_forked() -> bool:
            return len(running.alive("a")) == 2

        await until(is_forked, "The stand-in didn't fork")
        (await running.unload("a")).require(200)
        await running.until_gone("A child outlived its engine")
        return "both are gone"


@proves("An unload in a load's first moment, at a tenth and at half of it cancels the load.")
async def is_unloaded_while_it_starts(folder: Path) -> str:
    seconds = 6.0
    async with studio(folder, {"a": {}}) as running:
        for part in (0.0, 0.1, 0.5):
            running.behave("a", moves_seconds=seconds)
            async with meanwhile(running.load("a")) as loading:
                await _until_loading(running, "a", part * seconds)
                (await running.unload("a")).require(200)
                (await loading).require(499, "load_cancelled")
            await running.until_gone("The cancelled load left a process", seconds=2)
            running.behave("a")
            (await running.load("a")).require(200)
            await _unload(running, "a")
        return "three times 499, no process left, and each time the next load worked"


async def _until_loading(running: Studio, model: str, seconds: float) -> None:
    """Returns when the model's load is known, and has been starting for so long."""

    async def look() -> bool:
        status = await running.status()
        if not seconds:
            return bool(model in status["loading"])
        states = [engine["status"] for engine in status["engines"] if engine["model"] == model]
        return bool(states and states[0].get("elapsed_seconds", 0) >= seconds)

    await until(look, f"{model} isn't loading for {seconds:g} s")


@proves("An unload cancels a load while it still looks at the model and at the engine's program.")
async def is_unloaded_while_it_is_planned(folder: Path) -> str:
    stand_in.write(folder / "llama-server", describes_late_seconds=6)
    async with studio(folder, {"a": {}}) as running, meanwhile(running.load("a")) as loading:

        async def is_resolving() -> bool:
            progress = (await running.get("/v1/load/progress")).require(200).body
            return str(progress["phase"]) == "resolving"

        await until(is_resolving, "The progress doesn't say that the load is resolving")
        reply = (await running.unload("a")).require(200)
        (await loading).require(499, "load_cancelled")
        expect(reply.seconds < 5, f"The unload waited {reply.seconds:.1f} s for the plan.")
        expect(running.starts() == 0, "The engine was started all the same.")
        return f"cancelled in {reply.seconds:.2f} s, and nothing was started"


@proves("An unload ends an engine that hangs silently in its start.")
async def is_unloaded_while_it_hangs(folder: Path) -> str:
    async with (
        studio(folder, {"a": {"hangs": True, "ignores_sigterm": True}}) as running,
        meanwhile(running.load("a")) as loading,
    ):
        await running.until_started("a")
        reply = await _unload(running, "a")
        (await loading).require(499, "load_cancelled")
        return f"gone after {reply.seconds:.1f} s, and the load was told"


@proves("An unload cancels a load that waits for its turn.")
async def is_unloaded_while_it_waits(folder: Path) -> str:
    async with (
        studio(folder, {"slow": {"moves_seconds": 3}, "next": {}}) as running,
        meanwhile(running.load("slow")) as slow,
    ):
        await running.until_started("slow")
        async with meanwhile(running.load("next")) as waiting:
            await _until_loading(running, "next", 0)
            (await running.unload("next")).require(200)
            (await waiting).require(499, "load_cancelled")
        (await slow).require(200)
        expect(running.starts("next") == 0, "The cancelled model was started.")
        return "499 for the one that waited; the other was loaded"


@proves("An unload during an answer ends it with one error that says so.")
async def is_unloaded_while_it_answers(folder: Path) -> str:
    async with studio(folder, {"a": {"repeats": 10_000, "pause_seconds": 0.05}}) as running:
        (await running.load("a")).require(200)
        async with running.stream("a") as stream:
            await stream.read(tokens=3)
            reply = await _unload(running, "a")
            (await stream.read()).failure("model_unloaded")
        return f"one model_unloaded, and the process gone in {reply.seconds:.1f} s"


@proves("An engine that never answers can be unloaded, and other models load meanwhile.")
async def never_answers(folder: Path) -> str:
    models = {"stuck": {"never_answers": True, "ignores_sigterm": True}, "other": {}}
    async with studio(folder, models) as running:
        (await running.load("stuck")).require(200)
        async with meanwhile(running.chat("stuck")) as asking:

            async def is_asked() -> bool:
                return bool(running.noted("request", "stuck"))

            await until(is_asked, "The request didn't reach the engine")
            other = (await running.load("other", keep_others=True)).require(200)
            reply = await _unload(running, "stuck")
            (await asking).require(409, "model_unloaded")
        (await running.chat("other")).require(200)
        return f"another model loaded in {other.seconds:.1f} s; unloaded in {reply.seconds:.1f} s"


@proves("An unload that may not disturb is refused while the model answers, and works after.")
async def is_busy_and_not_forced(folder: Path) -> str:
    async with studio(folder, {"a": {"repeats": 8, "pause_seconds": 0.1}}) as running:
        (await running.load("a")).require(200)
        async with running.stream("a") as stream:
            await stream.read(tokens=3)
            (await running.unload("a", force=False)).require(409, "engine_busy")
            await stream.read()
        expect(stream.is_done, "The answer was disturbed.")

        async def is_unloaded() -> bool:
            return (await running.unload("a", force=False)).status == 200

        await until(is_unloaded, "It can't be unloaded after the answer either")
        return "409 engine_busy during the answer, which came whole; then unloaded"


@proves("An unload while an engine starts again after a crash ends that start.")
async def is_unloaded_while_it_restarts(folder: Path) -> str:
    async with studio(folder, {"a": {"then": "kill"}}) as running:
        (await running.load("a")).require(200)
        running.behave("a", moves_seconds=600)
        (await running.chat("a")).require(502, "engine_crashed")
        await running.until_started("a", 2)
        reply = await _unload(running, "a")
        expect(running.starts("a") == 2, "It was started once more.")
        return f"gone after {reply.seconds:.1f} s, and not started again"


@proves("Ten unloads at once all say that the model is gone.")
async def is_unloaded_ten_times(folder: Path) -> str:
    async with studio(folder, {"a": {"stops_late_seconds": 0.5}}) as running:
        (await running.load("a")).require(200)
        started = time.monotonic()
        for reply in await asyncio.gather(*(running.unload("a") for _ in range(10))):
            reply.require(200)
        expect(not running.alive(), "The process is still there.")
        (await running.load("a")).require(200)
        return f"ten answers in {time.monotonic() - started:.1f} s, and a load that worked"


@proves("An unload of nothing is no error.")
async def was_never_loaded(folder: Path) -> str:
    async with studio(folder, {"a": {}}) as running:
        for model in ("a", None):
            reply = (await running.unload(model)).require(200)
            expect(reply.body["status"] == "not_loaded", f"It said {reply.body['status']}.")
        (await running.unload("b")).require(404, "model_not_found")
        return "not_loaded for what isn't loaded, 404 for what isn't there"
