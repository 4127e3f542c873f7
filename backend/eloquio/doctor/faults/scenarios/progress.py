"""Starts that take their time: what moves is waited for, what doesn't is given up."""

import asyncio
import json
from pathlib import Path

from eloquio.doctor.faults.scenario import expect, meanwhile, proves, until
from eloquio.doctor.faults.serving import studio
from eloquio.doctor.faults.studio import Json, Studio

_LIMIT = {"ELOQUIO_START_INACTIVITY_SECONDS": 2}
_SHORT_LIMIT = {"ELOQUIO_START_INACTIVITY_SECONDS": 1}
_LONGER_SECONDS = 5


@proves("A load that writes to its log may take longer than the inactivity limit.")
async def moves_for_long(folder: Path) -> str:
    async with studio(folder, {"a": {"moves_seconds": _LONGER_SECONDS}}, _LIMIT) as running:
        reply = (await running.load("a")).require(200)
        return f"loaded after {reply.seconds:.1f} s, with a limit of 2 s"


@proves("A load that only computes may take longer than the inactivity limit.")
async def computes_for_long(folder: Path) -> str:
    async with studio(folder, {"a": {"computes_seconds": _LONGER_SECONDS}}, _LIMIT) as running:
        reply = (await running.load("a")).require(200)
        return f"loaded after {reply.seconds:.1f} s of silent computing, with a limit of 2 s"


@proves("A load that only reads its weights may take longer than the inactivity limit.")
async def grows_for_long(folder: Path) -> str:
    async with studio(folder, {"a": {"grows_bytes": 80 * 2**20}}, _LIMIT) as running:
        reply = (await running.load("a")).require(200)
        engine = await running.engine("a")
        expect(engine, "/status doesn't know the model that was loaded.")
        assert engine is not None
        held = engine["resident_bytes"]
        expect(held > 80 * 2**20, f"/status says that it holds {held} bytes only.")
        return f"loaded after {reply.seconds:.1f} s; /status tells the {held >> 20} MiB it holds"


@proves("A silent start ends with a typed time-out, and the next load works.")
async def is_silent(folder: Path) -> str:
    async with studio(folder, {"a": {"hangs": True}}, _SHORT_LIMIT) as running:
        reply = (await running.load("a")).require(504, "engine_no_progress")
        await running.until_gone("The silent engine is still there")
        running.behave("a")
        (await running.load("a")).require(200)
        return f"504 after {reply.seconds:.1f} s with a limit of 1 s, then a load that worked"


@proves("Being asked for its health keeps no start alive: a silent one is given up all the same.")
async def is_silent_and_unhealthy(folder: Path) -> str:
    async with studio(folder, {"a": {"ready_after_seconds": 600}}, _SHORT_LIMIT) as running:
        reply = (await running.load("a")).require(504, "engine_no_progress")
        return f"504 after {reply.seconds:.1f} s with a limit of 1 s"


@proves("An engine that is never ready but writes to its log is waited for, until an unload.")
async def is_never_ready_but_chatters(folder: Path) -> str:
    return await _is_waited_for(folder, {"ready_after_seconds": 600, "chatters": True})


@proves("An engine that is never ready but computes is waited for, until an unload.")
async def is_never_ready_but_computes(folder: Path) -> str:
    return await _is_waited_for(folder, {"ready_after_seconds": 600, "toils": True})


async def _is_waited_for(folder: Path, behaviour: Json) -> str:
    async with (
        studio(folder, {"a": behaviour}, _LIMIT) as running,
        meanwhile(running.load("a")) as loading,
    ):
        await running.until_state("a", "starting")
        await _until_elapsed(running, "a", _LONGER_SECONDS)
        expect(not loading.done(), "It was given up, though it moved.")
        (await running.unload("a")).require(200)
        (await loading).require(499, "load_cancelled")
        return "still waited for after more than twice the limit, then cancelled by an unload"


@proves("An engine that is ready late is used when it is ready, not before.")
async def is_ready_late(folder: Path) -> str:
    async with studio(folder, {"a": {"ready_after_seconds": 1.5}}) as running:
        reply = (await running.load("a")).require(200)
        expect(reply.seconds >= 1.5, f"It was taken for ready after {reply.seconds:.1f} s.")
        return f"loaded after {reply.seconds:.1f} s"


@proves("What isn't HTTP is not taken for health.")
async def answers_garbage_for_health(folder: Path) -> str:
    garbage = "\x00\x01\x02 no HTTP at all \r\n\r\n"
    async with studio(folder, {"a": {"health": garbage}}, _SHORT_LIMIT) as running:
        reply = (await running.load("a")).require(504, "engine_no_progress")
        return f"not taken for ready, and given up after {reply.seconds:.1f} s"


@proves("An engine that can't describe itself is refused, and leaves no process.")
async def answers_garbage_for_properties(folder: Path) -> str:
    garbage = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{not json"
    lists = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]"
    models = {"text": {"props": garbage}, "list": {"props": lists}}
    async with studio(folder, models) as running:
        for model in models:
            (await running.load(model)).require(502)
        await running.until_gone("An engine that was refused is still there")
        return "502 for text that isn't JSON and for JSON of another shape"


@proves("While one model hangs in its load, one that is ready answers.")
async def hangs_beside_one_that_answers(folder: Path) -> str:
    models = {"ready": {}, "stuck": {"hangs": True}}
    async with studio(folder, models) as running:
        (await running.load("ready")).require(200)
        async with meanwhile(running.load("stuck")) as loading:
            await running.until_started("stuck")
            slowest = 0.0
            for _ in range(20):
                reply = (await running.chat("ready")).require(200)
                slowest = max(slowest, reply.seconds)
            expect(not loading.done(), "The load was over too soon.")
            (await running.unload("stuck")).require(200)
        return f"20 answers, the slowest in {slowest:.2f} s"


@proves("A load tells its phases, to who listens from the start and to who comes late.")
async def tells_its_progress(folder: Path) -> str:
    async with (
        studio(folder, {"a": {"moves_seconds": 2, "grows_bytes": 20 * 2**20}}) as running,
        meanwhile(_phases(running)) as listening,
    ):
        async with meanwhile(running.load("a")) as loading:
            await running.until_state("a", "starting")
            late = (await running.get("/v1/load/progress")).require(200).body
            expect(late["phase"] in ("starting", "warming"), f"Late it said {late['phase']}.")
            (await loading).require(200)
        phases = await asyncio.wait_for(listening, 30)
        expect("starting" in phases, f"The phases were {phases}.")
        return f"{' → '.join(phases)}; and {late['phase']} to who came late"


async def _phases(running: Studio) -> list[str]:
    """The phases that the progress goes through, until the model is ready."""
    phases: list[str] = []
    headers = {"accept": "text/event-stream"}
    async with running.http.get(f"{running.url}/v1/load/progress", headers=headers) as reply:
        async for line in reply.content:
            if line.startswith(b"data: "):
                phase = json.loads(line.removeprefix(b"data: "))["phase"]
                if phase not in phases:
                    phases.append(phase)
                if phase == "ready":
                    break
    return phases


async def _until_elapsed(running: Studio, model: str, seconds: float) -> None:
    """Returns when the model has been starting for so long, by its own account."""

    async def look() -> bool:
        engine = await running.engine(model)
        expect(engine is not None and engine["status"]["state"] == "starting", "It isn't starting.")
        assert engine is not None
        return bool(engine["status"]["elapsed_seconds"] >= seconds)

    await until(look, f"{model} isn't starting for {seconds:g} s")
