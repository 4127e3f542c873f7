"""The checks that look around: nothing is started or changed but the home folder's rights."""

import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from eloquio.doctor.check import Check
from eloquio.engines.devices import nvidia_devices
from eloquio.engines.inventory import Build
from eloquio.errors import EngineMissing
from eloquio.models.catalog import Catalog
from eloquio.models.entry import ModelEntry
from eloquio.private_files import private_folder
from eloquio.server import CannotListen, listen
from eloquio.settings import BUILTIN_MODEL, Settings
from eloquio.setup.model import BUILT_IN
from eloquio.system.devices import cpu
from eloquio.system.machine import with_unusable

_SCARCE_BYTES = 1024**3
_GIB = 1024**3


def python() -> Check:
    version = platform.python_version()
    place = "in an environment of its own" if sys.prefix != sys.base_prefix else "system-wide"
    return Check("python", "ok", f"Python {version}, {place}.")


def home(settings: Settings) -> Check:
    """Whether the home folder can be written, is closed to others, and has room."""
    folder = settings.home
    try:
        private_folder(folder)
        probe = folder / f".probe.{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        return Check(
            "home",
            "fail",
            f"{folder} can't be written: {error.strerror}.",
            "Make it yours to write, or name another with --home or ELOQUIO_HOME.",
        )
    if folder.stat().st_mode & 0o077:
        return Check(
            "home",
            "warn",
            f"{folder} is open to other users, and not ours to close.",
            f"Let its owner run: chmod 700 '{folder}'",
        )
    free_bytes = shutil.disk_usage(folder).free
    sentence = f"{folder} can be written, by you alone; {free_bytes / _GIB:.1f} GiB are free."
    if free_bytes < _SCARCE_BYTES:
        return Check("home", "warn", sentence, "Make room: models and logs need it.")
    return Check("home", "ok", sentence)


def llama_server(build: Build | EngineMissing) -> Check:
    """The engine's program, as `Inventory.build` found it."""
    if isinstance(build, EngineMissing):
        return Check("llama-server", "fail", build.message, build.next_step)
    origin = {
        "setting": "named by LLAMA_SERVER_PATH",
        "path": "found on PATH",
        "built": "built here",
        "wheel": "from the prebuilt package",
    }.get(build.source, build.source)
    if build.problem is not None:
        problem = build.problem
        sentence = f"llama-server, {origin}, can't be asked: {problem.message}"
        return Check("llama-server", "fail", sentence, problem.next_step, problem.evidence)
    return Check("llama-server", "ok", f"llama-server {build.version}, {origin}.")


def devices(build: Build | EngineMissing) -> Check:
    """What models run on; a card that the engine can't use is a warning."""
    seen = () if isinstance(build, EngineMissing) else build.devices
    told = with_unusable(seen, nvidia_devices())
    names = [
        f"{device.id} ({device.name}, {device.free_bytes / _GIB:.1f} GiB free)"
        for device in told
        if device.is_usable
    ]
    sentence = f"Models run on {', '.join(names) or _processor()}."
    unusable = [device.name for device in told if not device.is_usable]
    if unusable:
        return Check(
            "devices",
            "warn",
            f"{sentence} This llama-server can't use {', '.join(unusable)}.",
            "Build one that can, with scripts/start --cuda, or install the card's Vulkan driver.",
        )
    return Check("devices", "ok", sentence)


def _processor() -> str:
    processor = cpu()
    return f"the processor ({processor.name}, {processor.threads} threads)"


def model_folders(folders: Sequence[Path], entries: list[ModelEntry]) -> list[Check]:
    """One check for each folder that the person named, and one for Hugging Face's cache."""
    checks = [_folder(folder, entries) for folder in folders]
    cached = [entry for entry in entries if entry.source == "hub_cache"]
    where = "in Hugging Face's cache"
    return [*checks, Check("hub cache", "ok", f"{_counted(cached)} {where}.")]


def scan(settings: Settings, folders: Sequence[Path]) -> list[ModelEntry]:
    return Catalog(settings, lambda: folders).scan()


def _folder(folder: Path, entries: list[ModelEntry]) -> Check:
    if not folder.is_dir():
        return Check(
            "models",
            "warn",
            f"{folder} is no folder.",
            "Make it, or take it out of ELOQUIO_MODEL_DIRS or of the page's settings.",
        )
    here = [entry for entry in entries if entry.path.is_relative_to(folder)]
    broken = [entry for entry in here if entry.problem is not None]
    sentence = f"{_counted(here)} in {folder}."
    if broken:
        names = ", ".join(f"{entry.id}: {entry.problem}" for entry in broken)
        return Check("models", "warn", f"{sentence} {len(broken)} can't be loaded: {names}")
    return Check("models", "ok", sentence)


def _counted(entries: list[ModelEntry]) -> str:
    return "1 model" if len(entries) == 1 else f"{len(entries)} models"


def builtin_path(settings: Settings) -> Path:
    return settings.models_dir / f"{BUILTIN_MODEL}.gguf"


def builtin_model(settings: Settings) -> Check:
    """Whether the built-in model is there, and byte for byte what it should be."""
    path = builtin_path(settings)
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return Check(
            "built-in model",
            "fail",
            f"{BUILTIN_MODEL} isn't here.",
            "Run scripts/start: it brings it.",
        )
    if digest != BUILT_IN.sha256:
        return Check(
            "built-in model",
            "fail",
            f"{BUILTIN_MODEL} isn't what it should be: it was changed, or cut on the way.",
            f"Delete '{path}' and run scripts/start: it brings it anew.",
        )
    return Check("built-in model", "ok", f"{BUILTIN_MODEL} is here and whole.")


def port(settings: Settings) -> Check:
    """Whether a server could listen, or one of ours does already."""
    try:
        listen(settings.host, settings.port).close()
    except CannotListen as reason:
        if reason.is_ours:
            return Check("port", "ok", reason.message)
        return Check("port", "fail", reason.message, reason.next_step)
    return Check("port", "ok", f"Port {settings.port} is free.")
