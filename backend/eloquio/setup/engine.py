"""Where the llama-server comes from: found on the machine, in the packages, or built here."""

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from eloquio.setup.checkout import Checkout
from eloquio.setup.tools import SetupFailed

PACKAGED_FOR = ("linux", "x86_64")


class Build(Enum):
    """For what a llama-server is built from its source."""

    CPU = "cpu"
    CUDA = "cuda"


class EngineSource(Enum):
    NAMED = "LLAMA_SERVER_PATH"
    BUILT = "built here"
    ON_PATH = "PATH"
    PACKAGED = "a package"
    NONE = "nowhere"


def engine_source(
    checkout: Checkout, environment: Mapping[str, str], system: str, machine: str
) -> EngineSource:
    """Where a llama-server is to be had on this system (`linux`, `darwin`) and processor."""
    if named := environment.get("LLAMA_SERVER_PATH"):
        if not Path(named).expanduser().is_file():
            raise SetupFailed(
                f"LLAMA_SERVER_PATH names {named}, where no file is",
                next_step="Name the llama-server's binary itself, or unset it.",
            )
        return EngineSource.NAMED
    if checkout.built_engine.exists():
        return EngineSource.BUILT
    if shutil.which("llama-server", path=environment.get("PATH", os.defpath)):
        return EngineSource.ON_PATH
    if (system, machine) == PACKAGED_FOR:
        return EngineSource.PACKAGED
    return EngineSource.NONE


def extras_for(source: EngineSource) -> frozenset[str]:
    return frozenset({"engine"}) if source is EngineSource.PACKAGED else frozenset()


def how_to_get_one(system: str) -> str:
    if system == "darwin":
        return "Install one with `brew install llama.cpp`, then run it again."
    return "Build one with `scripts/start --build`, or name yours with LLAMA_SERVER_PATH."


def this_machine() -> tuple[str, str]:
    """The system and processor that Python runs on."""
    return sys.platform, platform.machine().lower().replace("amd64", "x86_64")
