"""Engines that fail to start, and what is said of it."""

import signal
from pathlib import Path

from eloquio.doctor.faults import model_files, stand_in
from eloquio.doctor.faults.scenario import expect, proves
from eloquio.doctor.faults.serving import studio


@proves("An engine that exits at once is reported at once, with its last line and exit status.")
async def exits_at_once(folder: Path) -> str:
    behaviour = {"says": ["error: no wish to start today"], "exits": 3}
    async with studio(folder, {"a": behaviour}) as running:
        reply = (await running.load("a")).require(502).says("no wish to start", "exit status 3")
        expect(reply.seconds < 10, f"It took {reply.seconds:.1f} s to say so.")
        engine = await running.until_state("a", "failed")
        expect(engine["last_error"], "/status doesn't say why it failed.")
        return f"502 in {reply.seconds:.2f} s, with its line and its exit status"


@proves("An engine that ends well before it served is a failure all the same.")
async def exits_as_if_all_were_well(folder: Path) -> str:
    async with studio(folder, {"a": {"says": ["nothing to do"], "exits": 0}}) as running:
        (await running.load("a")).require(502).says("nothing to do", "exit status 0")
        return "502 with its line and exit status 0"


@proves("An engine that dies by a signal while it starts is reported with the signal's name.")
async def dies_by_a_signal_at_the_start(folder: Path) -> str:
    behaviours = {
        "segv": {"dies_by": int(signal.SIGSEGV)},
        "abrt": {"dies_by": int(signal.SIGABRT)},
        "ill": {"dies_by": int(signal.SIGILL)},
        "bus": {"dies_by": int(signal.SIGBUS)},
    }
    async with studio(folder, behaviours) as running:
        for name in behaviours:
            (await running.load(name)).require(502).says(f"SIG{name.upper()}")
        return "SIGSEGV, SIGABRT, SIGILL and SIGBUS were each named"


@proves("An engine that the system kills while it starts is told from one that gave up.")
async def killed_at_the_start(folder: Path) -> str:
    async with studio(folder, {"a": {"dies_by": int(signal.SIGKILL)}}) as running:
        (await running.load("a")).require(502, "engine_killed").says("SIGKILL", "memory")
        return "engine_killed, with SIGKILL and what to do"


@proves("An engine without enough memory says so, by a code of its own.")
async def runs_out_of_memory(folder: Path) -> str:
    line = "ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory"
    async with studio(folder, {"a": {"says": [line], "exits": 1}}) as running:
        reply = (await running.load("a")).require(502, "engine_out_of_memory")
        reply.says("cudaMalloc failed", "smaller")
        return "engine_out_of_memory, with the engine's line and what to do"


@proves("A start that fails leaves the next one all it needs.")
async def fails_once(folder: Path) -> str:
    async with studio(folder, {"a": {"fails_starts": 1}}) as running:
        (await running.load("a")).require(502).says("not this time")
        (await running.load("a")).require(200)
        (await running.chat("a")).require(200)
        return "the first load failed, the second one answered"


@proves("A load that fails takes nothing from the model that is loaded.")
async def a_failed_load_costs_nothing(folder: Path) -> str:
    async with studio(folder, {"good": {}, "bad": {"exits": 1}}) as running:
        (await running.load("good")).require(200)
        [before] = running.alive("good")
        (await running.load("bad")).require(502)
        (await running.chat("good")).require(200)
        expect(running.alive("good") == [before], "The good model was started anew.")
        return "the loaded model answered on, in the same process"


@proves("Without a llama-server a load says what is missing, and the server serves on.")
async def has_no_program(folder: Path) -> str:
    program = stand_in.write(folder / "llama-server")
    async with studio(folder, {"a": {}}) as running:
        program.unlink()
        (await running.load("a")).require(502, "engine_missing")
        (await running.get("/health")).require(200)
        stand_in.write(program)
        (await running.load("a")).require(200)
        return "engine_missing, and a load once it was there again"


@proves("A file that is no program is told apart from a program that fails.")
async def has_a_program_that_is_none(folder: Path) -> str:
    program = folder / "llama-server"
    program.write_text("not a program")
    program.chmod(0o755)
    async with studio(folder, {"a": {}}) as running:
        (await running.load("a")).require(502, "engine_missing").says("can't be run")
        return "engine_missing, which says that it can't be run"


@proves("No error tells where on this machine the person's files lie.")
async def keeps_paths_to_itself(folder: Path) -> str:
    path = model_files.place(folder / "home" / "shelf", "a")
    behaviour = {"says": [f"error: failed to open '{path}' for a reason"], "exits": 1}
    async with studio(folder, {"a": behaviour}) as running:
        reply = (await running.load("a")).require(502).says("for a reason")
        expect(str(folder) not in reply.text, f"The error holds a path: {reply.text}")
        expect(str(folder) not in str(await running.status()), "/status holds a path.")
        return "the engine's line came through without the folder in it"
