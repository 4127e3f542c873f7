"""The suites of tests of a checkout, and how each is run."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eloquio.setup.browser import find_chromium
from eloquio.setup.checkout import Checkout, home_model
from eloquio.setup.console import Progress
from eloquio.setup.model import put
from eloquio.setup.node import Node
from eloquio.setup.reports import Count, count
from eloquio.setup.tools import Command, SetupFailed, ToolFailed, Tools

LIMIT_SECONDS = 30 * 60.0
PAGE = "page"
END_TO_END = "e2e"
NOT_TESTS = {END_TO_END, "fixtures"}
SETTINGS_OF_A_PERSON = ("ELOQUIO_", "HF_", "HUGGING", "TRANSFORMERS_", "XDG_", "PYTEST_", "PYTHON")


@dataclass(frozen=True)
class Suite:
    name: str
    command: Callable[[Path], Command]
    """What runs it and writes a JUnit report to that path."""


def python_suites(checkout: Checkout) -> list[str]:
    """The folders below `tests` with Python tests; the fast ones come first."""
    folders = [path for path in (checkout.root / "tests").iterdir() if path.name not in NOT_TESTS]
    names = [path.name for path in folders if any(path.rglob("test_*.py"))]
    return sorted(names, key=lambda name: (name != "unit", name))


def suite(name: str, checkout: Checkout) -> Suite:
    match name:
        case "page":
            vitest: Command = [checkout.node_modules / ".bin" / "vitest", "run"]
            arguments = ["--root", str(checkout.frontend), "--reporter=default", "--reporter=junit"]
            return Suite(name, lambda report: [*vitest, *arguments, f"--outputFile.junit={report}"])
        case "e2e":
            playwright = checkout.node_modules / ".bin" / "playwright"
            tests = checkout.root / "tests" / END_TO_END
            return Suite(
                name, lambda report: [playwright, "test", "-c", tests, "--reporter=list,junit"]
            )
        case "worker":
            tests = checkout.root / "tests" / name
            # Under its own Python, which hasn't what the other tests' conftest needs.
            own: Command = [checkout.worker_python, "-m", "pytest", "-c", tests / "pytest.ini"]
            return Suite(name, lambda report: [*own, tests, f"--junitxml={report}", "--color=no"])
        case _:
            pytest: Command = [checkout.python, "-m", "pytest", checkout.root / "tests" / name]
            return Suite(name, lambda report: [*pytest, f"--junitxml={report}", "--color=no"])


class SuiteRunner:
    """Runs suites in homes of their own, and remembers what each counted."""

    def __init__(self, checkout: Checkout, tools: Tools, node: Node) -> None:
        self._checkout = checkout
        self._tools = tools
        self._node = node
        self.counts: dict[str, Count] = {}

    def run(self, suite: Suite, progress: Progress) -> None:
        """Run it and count its cases. SetupFailed, with what it said, if any of them failed."""
        with tempfile.TemporaryDirectory(prefix="eloquio-") as folder:
            report = Path(folder, "report.xml")
            with home_of_its_own(self._checkout) as home:
                environment = self._environment(home, report)
                failure = self._failure(suite.command(report), environment, progress)
            self.counts[suite.name] = count(report, runner_failed=failure is not None)
        progress.name = f"{suite.name}: {self.counts[suite.name].line()}"
        if failure is not None:
            raise SetupFailed(
                str(failure), next_step="", output=without_server_lines(failure.output)
            )

    def _failure(
        self, command: Command, environment: dict[str, str], progress: Progress
    ) -> ToolFailed | None:
        try:
            self._tools.run(
                command,
                cwd=self._checkout.root,
                environment=environment,
                progress=progress,
                limit_seconds=LIMIT_SECONDS,
            )
        except ToolFailed as error:
            return error
        return None

    def _environment(self, home: Path, report: Path) -> dict[str, str]:
        environment = environment_for_tests(self._node.environment(), home) | {
            "ELOQUIO_TEST_MODEL": str(self._checkout.kept_model),
            "PLAYWRIGHT_JUNIT_OUTPUT_FILE": str(report),
        }
        if chromium := find_chromium():
            environment["CHROMIUM"] = chromium
        return environment


def without_server_lines(output: str) -> str:
    """What the tests said, without the log of the server they ask: it keeps its own."""
    lines = output.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("[WebServer]"))


@contextmanager
def home_of_its_own(checkout: Checkout) -> Iterator[Path]:
    """A person's home folder for one suite, with an Eloquio home that has the built-in model."""
    with tempfile.TemporaryDirectory(prefix="eloquio-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        if checkout.kept_model.exists():
            put(checkout.kept_model, home_model(home / "eloquio"))
        yield home


def environment_for_tests(environment: dict[str, str], home: Path) -> dict[str, str]:
    """The environment with nothing of the person's: no home, no caches, no settings of theirs."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.upper().startswith(SETTINGS_OF_A_PERSON)
    }
    return kept | {
        "HOME": str(home),
        "ELOQUIO_HOME": str(home / "eloquio"),
        "HF_HOME": str(home / "huggingface"),
        "HF_HUB_OFFLINE": "1",
        "PATH": environment.get("PATH", os.defpath),
    }
