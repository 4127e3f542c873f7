"""What only a worker does: its environment, and why a load failed in its own words."""

import json
import sys
from pathlib import Path

from eloquio.doctor.faults.scenario import expect, proves
from eloquio.doctor.faults.serving import studio

_CAUSES = {
    "out_of_memory": (502, "engine_out_of_memory"),
    "loader_refused": (502, "loader_refused"),
    "adapter_refused": (502, "adapter_refused"),
    "pickle_refused": (400, "pickle_refused"),
    "custom_code": (400, "remote_code_refused"),
    "architecture_unsupported": (502, "architecture_unsupported"),
    "a_cause_of_tomorrow": (502, "engine_refused_file"),
}


@proves("Why a worker can't load a model is told by a code of its own, with the library's words.")
async def says_why_its_load_failed(folder: Path) -> str:
    told = {
        cause: {"says": [_last_line(cause, f"the library's words of {cause}")], "exits": 1}
        for cause in _CAUSES
    }
    async with studio(folder, told) as running:
        for cause, (status, code) in _CAUSES.items():
            (await running.load(cause)).require(status, code).says(f"words of {cause}")
        return f"{len(_CAUSES)} causes, each with its code and words"


def _last_line(cause: str, message: str) -> str:
    return "worker-load-failed: " + json.dumps({"cause": cause, "message": message})


@proves("A worker's environment that lacks a package is told by the package's name.")
async def lacks_a_package(folder: Path) -> str:
    line = "ModuleNotFoundError: No module named 'torch'"
    async with studio(folder, {"a": {"says": ["Traceback", line], "exits": 1}}) as running:
        (await running.load("a")).require(502, "worker_missing").says("torch")
        (await running.get("/health")).require(200)
        return "worker_missing, which names torch"


@proves("Without its environment a worker's load says what is missing, and works once it is there.")
async def has_no_environment(folder: Path) -> str:
    async with studio(folder, {"a": {}}) as running:
        away = running.program.rename(folder / "elsewhere")
        (await running.load("a")).require(502, "worker_missing")
        (await running.get("/health")).require(200)
        away.rename(running.program)
        (await running.load("a")).require(200)
        return "worker_missing, and a load once it was there again"


@proves("An environment whose Python is none is told apart from a worker that fails.")
async def has_an_environment_that_is_none(folder: Path) -> str:
    program = folder / "llama-server"
    program.write_text("no Python")
    program.chmod(0o755)
    async with studio(folder, {"a": {}}) as running:
        reply = await running.load("a")
        expect(reply.status >= 500 and reply.code, f"The load was answered with {reply}.")
        expect(sys.prefix not in reply.text, "The error holds a path.")
        (await running.get("/health")).require(200)
        return f"{reply.status} {reply.code}"
