"""`scripts/check`: everything about the code that can be told without running it."""

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from eloquio.setup.checkout import Checkout, environment_of_tools
from eloquio.setup.console import Console, Progress
from eloquio.setup.lock import only_one
from eloquio.setup.node import Node, node_step, required_node
from eloquio.setup.packages import packages_step, venv_step
from eloquio.setup.page import node_modules_step
from eloquio.setup.signals import unwind_on_signals
from eloquio.setup.steps import Step, explanation, run_steps
from eloquio.setup.tools import Command, SetupFailed, ToolFailed, Tools

SHOWN_LINES = 60
FIXABLE = "`scripts/check --fix` mends what can be mended."
API_DOCUMENT = Path("openapi.json")
API_TYPES = Path("frontend/src/api/schema.gen.ts")
ERRORS_DOCUMENT = Path("docs/errors.md")
END_TO_END = Path("tests/e2e")


def check(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    unwind_on_signals()
    checkout, tools = Checkout.here(), Tools()
    with Console() as console:
        try:
            with only_one(checkout, console):
                failed = run_steps(check_tools(checkout, tools), tools, console)
            if not failed:
                checks = Checks(checkout, tools, required_node(checkout))
                if options.fix:
                    checks.fix(console)
                failed = run_steps(checks.steps(), tools, console, at_once=processors())
        except (SetupFailed, OSError) as error:
            console.say(explanation("Set-up", error))
            return 1
        except KeyboardInterrupt:
            return 130
        console.say(f"Failed: {', '.join(failed)}" if failed else "All is well.")
    return 1 if failed else 0


def check_tools(checkout: Checkout, tools: Tools) -> list[Step]:
    return [
        venv_step(checkout, tools),
        packages_step(checkout, ("dev",), tools),
        node_step(checkout, tools),
        node_modules_step(checkout, tools),
    ]


def processors() -> int:
    return max(2, os.cpu_count() or 2)


class Checks:
    """The checks of a checkout, each a step that is never made."""

    def __init__(self, checkout: Checkout, tools: Tools, node: Node) -> None:
        self._root = checkout.root
        self._frontend = checkout.frontend
        self._tools = tools
        self._scripts = checkout.venv / "bin"
        self._bin = checkout.node_modules / ".bin"
        self._cache = checkout.node_modules / ".cache"
        self._environment = node.environment()

    def steps(self) -> list[Step]:
        # The longest first, so that they don't run alone at the end.
        return [
            self._check("mypy", [self._scripts / "mypy"]),
            self._check("biome", [self._bin / "biome", "check", "."], next_step=FIXABLE),
            self._check("tsc", self._tsc(self._frontend)),
            self._check("tsc of the end-to-end tests", self._tsc(self._root / END_TO_END)),
            Step("API document and types", _never, self._api_is_fresh, shown_lines=SHOWN_LINES),
            Step(str(ERRORS_DOCUMENT), _never, self._errors_are_fresh, shown_lines=SHOWN_LINES),
            self._check("lint-imports", [self._scripts / "lint-imports"]),
            self._check(
                "dependency-cruiser",
                [self._bin / "depcruise", "src", "--config", ".dependency-cruiser.cjs"],
                cwd=self._frontend,
            ),
            self._check("ruff", [self._scripts / "ruff", "check", "."], next_step=FIXABLE),
            self._check(
                "ruff format", [self._scripts / "ruff", "format", "--diff", "."], next_step=FIXABLE
            ),
        ]

    def fix(self, console: Console) -> None:
        """Format, mend what the linters can, and write anew what is made from the code."""
        progress = console.start("mending")
        commands: list[Command] = [
            [self._scripts / "ruff", "check", "--fix", "--quiet", "."],
            [self._scripts / "ruff", "format", "--quiet", "."],
            [self._bin / "biome", "check", "--write", "."],
        ]
        for command in commands:
            try:
                self._run(command, progress)
            except ToolFailed:
                # What is left is said by the checks, which run after this.
                continue
        try:
            document = self._api_document(progress)
            (self._root / API_DOCUMENT).write_text(document, encoding="utf-8")
            self._write_types(self._root / API_TYPES, progress)
            errors = self._errors_document(progress)
            (self._root / ERRORS_DOCUMENT).write_text(errors, encoding="utf-8")
        except ToolFailed:
            console.finish(progress, "!!")
        else:
            console.finish(progress)

    def _check(
        self,
        name: str,
        command: Command,
        *,
        cwd: Path | None = None,
        next_step: str = "",
    ) -> Step:
        def run(progress: Progress) -> None:
            try:
                self._run(command, progress, cwd)
            except ToolFailed as error:
                raise SetupFailed(str(error), next_step=next_step, output=error.output) from error

        return Step(name, _never, run, shown_lines=SHOWN_LINES)

    def _tsc(self, project: Path) -> Command:
        # What it knows from the last time makes it several times faster.
        known = self._cache / f"tsc-{project.name}.json"
        return [self._bin / "tsc", "-p", project, "--incremental", "--tsBuildInfoFile", known]

    def _run(self, command: Command, progress: Progress, cwd: Path | None = None) -> str:
        return self._tools.run(
            command, cwd=cwd or self._root, environment=self._environment, progress=progress
        )

    def _api_is_fresh(self, progress: Progress) -> None:
        document = self._api_document(progress)
        self._require_same(API_DOCUMENT, document, "the API's description by the server")
        with tempfile.TemporaryDirectory() as folder:
            types = Path(folder, API_TYPES.name)
            self._write_types(types, progress)
            self._require_same(API_TYPES, types.read_text("utf-8"), "the types made from it")

    def _errors_are_fresh(self, progress: Progress) -> None:
        self._require_same(
            ERRORS_DOCUMENT, self._errors_document(progress), "the errors' catalogue"
        )

    def _require_same(self, path: Path, made: str, what: str) -> None:
        kept = self._root / path
        if not kept.exists() or kept.read_text("utf-8") != made:
            raise SetupFailed(
                f"{path} is outdated: it differs from {what}",
                next_step="`scripts/check --fix` writes it anew.",
            )

    def _api_document(self, progress: Progress) -> str:
        with tempfile.TemporaryDirectory() as home:
            document = self._tools.run(
                [self._scripts / "python", "-m", "eloquio", "openapi"],
                cwd=self._root,
                environment=environment_of_tools() | {"ELOQUIO_HOME": home},
                progress=progress,
            )
        # Parsed, so that a warning printed beside it is found here and not by a reader.
        json.loads(document)
        return document

    def _errors_document(self, progress: Progress) -> str:
        return self._tools.run(
            [self._scripts / "python", "-m", "eloquio.errors"],
            cwd=self._root,
            environment=environment_of_tools(),
            progress=progress,
        )

    def _write_types(self, target: Path, progress: Progress) -> None:
        self._run([self._bin / "openapi-typescript", API_DOCUMENT, "-o", target], progress)


def _never() -> bool:
    return False


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/check", description="Format, lint, types, imports and generated files."
    )
    parser.add_argument(
        "--fix", action="store_true", help="format and regenerate first, then check the rest"
    )
    return parser.parse_args(arguments)
