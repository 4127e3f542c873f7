"""What `eloquio doctor` looks at, in the order in which one thing needs the other."""

import asyncio
from collections.abc import AsyncIterator

from eloquio.doctor import memory, surroundings
from eloquio.doctor.check import Check
from eloquio.doctor.proof import answers
from eloquio.engines.inventory import Build, Inventory
from eloquio.errors import EngineMissing
from eloquio.settings import Settings


async def visit(settings: Settings) -> AsyncIterator[Check]:
    """Each check as it is done; the last one is a real answer of a real engine."""
    yield surroundings.python()
    home = await asyncio.to_thread(surroundings.home, settings)
    yield home
    build = await _build(settings)
    engine = surroundings.llama_server(build)
    yield engine
    yield await asyncio.to_thread(surroundings.devices, build)
    database, chosen = await memory.recall(settings)
    yield database
    folders = tuple(dict.fromkeys((*settings.model_dirs, *chosen)))
    entries = await asyncio.to_thread(surroundings.scan, settings, folders)
    for check in surroundings.model_folders(folders, entries):
        yield check
    model = await asyncio.to_thread(surroundings.builtin_model, settings)
    yield model
    yield await asyncio.to_thread(surroundings.port, settings)
    if missing := [check.name for check in (home, engine, model) if check.verdict == "fail"]:
        yield Check("answer", "fail", f"No answer could be tried without: {', '.join(missing)}.")
    else:
        yield await answers(settings)


async def _build(settings: Settings) -> Build | EngineMissing:
    try:
        return await Inventory(settings).build()
    except EngineMissing as missing:
        return missing
