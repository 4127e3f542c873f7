"""The server is killed, without a moment to clean up: its engines end all the same."""

import time
from pathlib import Path
from typing import Any

from eloquio.doctor.faults.scenario import expect, meanwhile, proves, until
from eloquio.doctor.faults.serving import studio
from eloquio.doctor.faults.studio import Studio

_LIMIT_SECONDS = 3.0


async def _kill(running: Studio) -> str:
    """Kills the server. Broken unless its engines are gone within three seconds."""
    running.process.kill()
    await running.process.wait()
    started = time.monotonic()
    await running.until_gone("The server was killed and its engines live on", _LIMIT_SECONDS)
    return f"gone {time.monotonic() - started:.2f} s after the server"


@proves("When the server is killed, an engine that is ready ends within three seconds.")
async def outlives_no_kill_while_ready(folder: Path) -> str:
    async with studio(folder, {"a": {"ignores_sigterm": True}, "b": {}}) as running:
        for model in "ab":
            (await running.load(model, keep_others=True)).require(200)
        return await _kill(running)


@proves("When the server is killed, an engine that is starting ends within three seconds.")
async def outlives_no_kill_while_starting(folder: Path) -> str:
    async with (
        studio(folder, {"a": {"hangs": True}}) as running,
        meanwhile(running.load("a")),
    ):
        await running.until_started("a")
        return await _kill(running)


@proves("When the server is killed, an engine deep in a computation ends within three seconds.")
async def outlives_no_kill_while_computing(folder: Path) -> str:
    async with studio(folder, {"a": {"computes": True}}) as running:
        (await running.load("a")).require(200)
        async with meanwhile(running.chat("a")):

            async def is_computing() -> bool:
                return bool(running.noted("request", "a"))

            await until(is_computing, "The request didn't reach the engine")
            return await _kill(running)


@proves("An engine that outlived a killed server is ended by the next start, which says so.")
async def is_found_by_the_next_start(folder: Path) -> str:
    async with studio(folder, {"a": {"outlives_parent": True}}) as first:
        (await first.load("a")).require(200)
        [orphan] = first.alive("a")
        first.process.kill()
        await first.process.wait()
        expect(first.alive("a") == [orphan], "The stand-in didn't outlive the server.")
        old = _pid_files(first)
        expect(old, "There is no pid file of an engine that runs.")
        async with studio(folder, {"a": {}}, home=first.home) as second:
            await second.until_gone("The orphan is still there")
            expect(not any(file.exists() for file in old), "Its pid file is still there.")
            expect(str(orphan) in second.log(), f"The log doesn't name the orphan {orphan}.")
            (await second.load("a")).require(200)
        return f"the process {orphan} and its pid file are gone, and the log names it"


@proves("An orphan that ignores signals is ended by the next start too.")
async def is_stubborn_and_found_by_the_next_start(folder: Path) -> str:
    behaviour: dict[str, Any] = {"outlives_parent": True, "ignores_sigterm": True, "forks": True}
    async with studio(folder, {"a": behaviour}) as first:
        (await first.load("a")).require(200)
        first.process.kill()
        await first.process.wait()
        expect(first.alive("a"), "The stand-in didn't outlive the server.")
        async with studio(folder, {"a": {}}, home=first.home) as second:
            await second.until_gone("The orphan, or what it had forked, is still there")
        return "it and what it had forked are gone"


@proves("A pid file is there while its engine runs, and no longer.")
async def has_a_pid_file(folder: Path) -> str:
    async with studio(folder, {"a": {}}) as running:
        (await running.load("a")).require(200)
        files = _pid_files(running)
        expect(len(files) == 1, f"There are {len(files)} pid files for one engine.")
        expect(
            str(running.alive("a")[0]) in files[0].read_text(), "It doesn't hold the engine's pid."
        )
        (await running.unload("a")).require(200)
        expect(not _pid_files(running), "It is still there after the unload.")
        return "there after the load, gone after the unload"


def _pid_files(running: Studio) -> list[Path]:
    return list((running.home / "run").rglob("*.pid"))
