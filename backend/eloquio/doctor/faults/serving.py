"""Starts a whole Eloquio as a person starts it, with stand-ins for its engines, and ends it."""

import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from eloquio.doctor.faults import model_files, stand_in
from eloquio.doctor.faults.processes import kill, started_by
from eloquio.doctor.faults.scenario import Broken
from eloquio.doctor.faults.studio import Json, Studio
from eloquio.engines import launch

_SETTINGS_OF_A_PERSON = ("ELOQUIO_", "HF_", "HUGGING", "LLAMA_", "XDG_")
_START_SECONDS = 60.0


@asynccontextmanager
async def studio(
    folder: Path,
    models: Mapping[str, Json],
    variables: Mapping[str, object] | None = None,
    *,
    home: Path | None = None,
) -> AsyncIterator[Studio]:
    """A server with these models, each with its stand-in's behaviour.

    `variables` are added to its environment. At the end it is shut down, and Broken if that leaves
    a process behind.
    """
    home = home or folder / "home"
    shelf, program = home / "shelf", folder / "llama-server"
    home.mkdir(parents=True, exist_ok=True)
    if not program.exists():
        stand_in.write(program)
    for model, behaviour in models.items():
        stand_in.write_for(model_files.write_model(shelf, model), **behaviour)
    try:
        process, url = await _serve(home, _environment(home, shelf, program, variables or {}))
        timeout = aiohttp.ClientTimeout(total=2 * _START_SECONDS)
        connector = aiohttp.TCPConnector(limit=0)
        try:
            async with aiohttp.ClientSession(timeout=timeout, connector=connector) as http:
                running = Studio(home, shelf, program, process, url, http)
                yield running
                if process.returncode is None:
                    await running.end()
                    await running.until_gone("Its end left engines behind")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    finally:
        for note in started_by(program):
            kill(note["pid"], program)


async def _serve(
    home: Path, environment: Mapping[str, str]
) -> tuple[asyncio.subprocess.Process, str]:
    """The server's process, and its address as soon as it says it."""
    command = [*_bound_to_us(), sys.executable, "-m", "eloquio", "serve", "--no-browser"]
    command += ["--port", "0", "--home", str(home), "--no-load-on-start", "--log", "json"]
    with (home / "server.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env=environment,
            # Ctrl-C at the terminal is for the suite, which ends its servers itself.
            start_new_session=True,
        )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_START_SECONDS):
            line = await process.stdout.readline()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    address = re.search(rb"http://\S+", line)
    if address is None:
        last_words = (home / "server.log").read_text(errors="replace")[-500:]
        raise Broken(f"The server didn't start: {last_words}")
    return process, address.group().decode()


def _bound_to_us() -> tuple[str, ...]:
    """What a command begins with, so that it ends with this process, however that ends."""
    if sys.platform != "linux":
        return ()
    return (sys.executable, "-I", "-S", launch.__file__, str(os.getpid()))


def _environment(
    home: Path, shelf: Path, program: Path, variables: Mapping[str, object]
) -> dict[str, str]:
    """Nothing of the person's: no home, no models, no settings, no key."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_SETTINGS_OF_A_PERSON)
    }
    own = {
        "HOME": str(home),
        "HF_HOME": str(home / "no-hub"),
        "LLAMA_SERVER_PATH": str(program),
        "ELOQUIO_WORKER_PYTHON": str(program),
        "ELOQUIO_MODEL_DIRS": str(shelf),
    }
    return kept | own | {name: str(value) for name, value in variables.items()}


@asynccontextmanager
async def folder_of_its_own() -> AsyncIterator[Path]:
    """A folder with a name short enough for sockets in it, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="eloquio-"))
    try:
        yield folder
    finally:
        with suppress(OSError):
            await asyncio.to_thread(shutil.rmtree, folder)
