"""A checkout whose tools are small shell scripts that do what the real ones would, or fail."""

import io
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eloquio.setup.checkout import Checkout
from eloquio.setup.console import Console, Progress
from eloquio.setup.tools import Tools

HERE = Checkout.here()


class Workshop:
    """A checkout in a temporary folder, and a record of the commands its tools were given."""

    def __init__(self, root: Path) -> None:
        self.checkout = Checkout(root)
        self.record = root / "commands"
        self.tools_folder = root / "tools"
        self.tools_folder.mkdir()
        for name in ("pyproject.toml", "package.json", "package-lock.json"):
            (root / name).write_text(name)
        for file in (self.checkout.constraints, self.checkout.worker_constraints):
            file.parent.mkdir(exist_ok=True)
            file.write_text("one==1\n")
        (self.checkout.frontend / "src").mkdir(parents=True)
        (self.checkout.frontend / "src" / "main.tsx").write_text("page")

    def program(self, path: Path, script: str) -> Path:
        """A program that records how it was called, then runs the script."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "{path.name} $*" >> {self.record}\n{script}\n')
        path.chmod(0o755)
        return path

    def python(self, script: str = "") -> None:
        """The Python of `.venv`; `pip` is only looked for."""
        self.program(self.checkout.python, script)
        self.program(self.checkout.venv / "bin" / "pip", "")

    def commands(self) -> list[str]:
        return self.record.read_text().splitlines() if self.record.exists() else []

    def copy_scripts(self) -> None:
        """The real scripts and the real set-up, to be run as a person would."""
        root = self.checkout.root
        shutil.copytree(HERE.root / "scripts", root / "scripts")
        shutil.copytree(
            HERE.root / "backend" / "eloquio" / "setup",
            root / "backend" / "eloquio" / "setup",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        (root / "backend" / "eloquio" / "__init__.py").touch()

    def copy_of_python(self, *, pip: str = "", serve: str = "") -> None:
        """A Python of `.venv` that runs the set-up really, and plays the rest."""
        self.python(
            f"""case "$*" in
              "-c import sys;"* | "-m eloquio.setup "*) exec {sys.executable} "$@" ;;
              *" install "*) {pip or ":"} ;;
              "-m eloquio serve "*) {serve or ":"} ;;
            esac"""
        )


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    root = tmp_path / "checkout"
    root.mkdir()
    return Workshop(root)


@pytest.fixture
def tools() -> Iterator[Tools]:
    tools = Tools()
    yield tools
    tools.stop()


@pytest.fixture
def progress() -> Progress:
    return Progress("step", 0.0)


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def console(said: io.StringIO) -> Iterator[Console]:
    with Console(said) as console:
        yield console
