"""The Python environment of the server: `.venv` and what is installed in it."""

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from eloquio.setup.checkout import Checkout, environment_of_tools
from eloquio.setup.console import Progress
from eloquio.setup.stamps import Stamp, digest
from eloquio.setup.steps import Step
from eloquio.setup.tools import Command, SetupFailed, ToolFailed, Tools


def pip(python: Path, *arguments: str | Path) -> Command:
    """The command that is this Python's pip."""
    return [python, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]


def venv_step(checkout: Checkout, tools: Tools) -> Step:
    return Step(
        name="Python environment",
        is_made=lambda: has_pip(checkout.venv),
        make=lambda progress: make_venv(checkout.venv, tools, progress),
    )


def packages_step(checkout: Checkout, extras: Iterable[str], tools: Tools) -> Step:
    """The pinned packages, with these of the project's extras and those installed before."""
    packages = Packages(checkout, tools)
    wanted = frozenset(extras)
    return Step(
        name="Python packages",
        is_made=lambda: packages.has(wanted),
        make=lambda progress: packages.install(wanted, progress),
        after=("Python environment",),
    )


class Packages:
    """What is installed in `.venv`, by its stamp."""

    def __init__(self, checkout: Checkout, tools: Tools) -> None:
        self._checkout = checkout
        self._tools = tools
        self._stamp = Stamp(checkout.venv / "packages.stamp")

    def has(self, extras: frozenset[str]) -> bool:
        inputs, installed = self._installed_from()
        return has_pip(self._checkout.venv) and inputs == self._inputs() and extras <= installed

    def install(self, extras: frozenset[str], progress: Progress) -> None:
        extras |= self._installed_from()[1]
        self._stamp.clear()
        project = f".[{','.join(sorted(extras))}]" if extras else "."
        constraints = os.path.relpath(self._checkout.constraints, self._checkout.root)
        self._tools.run(
            pip(self._checkout.python, "install", "-c", constraints, "-e", project),
            cwd=self._checkout.root,
            # What builds the project is pinned too; older and newer pips read different names.
            environment=environment_of_tools()
            | {"PIP_CONSTRAINT": constraints, "PIP_BUILD_CONSTRAINT": constraints},
            progress=progress,
        )
        self._stamp.write("\n".join([self._inputs(), *sorted(extras)]))

    def _inputs(self) -> str:
        files = [self._checkout.root / "pyproject.toml", self._checkout.constraints]
        # The folder too: an environment that was moved still leads to where it was made.
        return digest(self._checkout.root, files, str(self._checkout.root))

    def _installed_from(self) -> tuple[str, frozenset[str]]:
        inputs, *extras = (self._stamp.text() or "").split("\n")
        return inputs, frozenset(extras)


def has_pip(venv: Path) -> bool:
    """Whether the environment is whole: made by a Python that is still there, and with its pip."""
    return (venv / "bin" / "python").exists() and (venv / "bin" / "pip").exists()


def make_venv(venv: Path, tools: Tools, progress: Progress) -> None:
    # Not with --clear, which would take the lock that lies there and what other steps keep there;
    # what a former Python left behind is of no use to this one.
    for leftover in ("bin", "lib", "lib64", "packages.stamp"):
        path = venv / leftover
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    try:
        tools.run([sys.executable, "-m", "venv", venv], cwd=venv.parent, progress=progress)
    except ToolFailed as error:
        if "ensurepip" not in error.output:
            raise
        raise SetupFailed(
            "this Python can't make environments with pip",
            next_step="On Debian or Ubuntu `apt-get install python3-venv`, then run it again.",
            output=error.output,
        ) from error
