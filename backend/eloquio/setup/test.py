"""`scripts/test`: everything that has to pass, with all the set-up that it needs."""

import argparse
import os
from collections.abc import Sequence

from eloquio.setup.browser import chromium_step
from eloquio.setup.check import Checks, processors
from eloquio.setup.checkout import Checkout
from eloquio.setup.console import Console, Progress
from eloquio.setup.engine import engine_source, extras_for, this_machine
from eloquio.setup.lock import only_one
from eloquio.setup.model import model_step
from eloquio.setup.node import node_step, required_node
from eloquio.setup.packages import packages_step, venv_step
from eloquio.setup.page import node_modules_step, page_step
from eloquio.setup.reports import Count
from eloquio.setup.signals import unwind_on_signals
from eloquio.setup.steps import Step, explanation, run_steps
from eloquio.setup.suites import END_TO_END, PAGE, Suite, SuiteRunner, python_suites, suite
from eloquio.setup.tools import SetupFailed, Tools
from eloquio.setup.worker import worker_step, worker_tests_step

CHECK = "check"
NEED_WORKER = {"worker", "wire", END_TO_END}
BESIDE_SET_UP = ("unit",)
SHOWN_LINES = 400


def test(arguments: Sequence[str]) -> int:
    checkout = Checkout.here()
    names = wanted_suites(arguments, checkout)
    unwind_on_signals()
    tools = Tools()
    with Console() as console:
        try:
            total = run_all(checkout, names, tools, console)
        except (SetupFailed, OSError) as error:
            console.say(explanation("Set-up", error))
            total = Count(failed=1)
        except KeyboardInterrupt:
            return 130
    # Written last of all, and alone on its line: scripts read it.
    console.say(total.line())
    return 1 if total.failed or not total.passed else 0


def run_all(checkout: Checkout, names: Sequence[str], tools: Tools, console: Console) -> Count:
    """Set up what these suites need, run all of them, and count what they found."""
    with only_one(checkout, console):
        failed = run_steps(needed_steps(checkout, names, tools), tools, console)
        if failed:
            return _said(console, failed)
        node = required_node(checkout)
        runner = SuiteRunner(checkout, tools, node)
        steps = {name: _as_step(suite(name, checkout), runner) for name in names if name != CHECK}
        checks = Checks(checkout, tools, node).steps() if CHECK in names else []
        large = worker_steps(checkout, names, tools)
        # Beside each other: the set-up of the worker is long, and mostly waits for a disk.
        beside = [steps.pop(name) for name in BESIDE_SET_UP if name in steps]
        ended = run_steps([*large, *checks, *beside], tools, console, at_once=processors())
    if failed := [step.name for step in large if step.name in ended]:
        return _said(console, failed)
    # One at a time: they measure time, and share two processors with the engines they start.
    run_steps(list(steps.values()), tools, console, at_once=1)
    wrong = [check for check in checks if check.name in ended]
    checked = Count(passed=len(checks) - len(wrong), failed=len(wrong))
    return sum(runner.counts.values(), checked)


def _said(console: Console, failed: Sequence[str]) -> Count:
    console.say(f"Set-up failed: {', '.join(failed)}. Running it again goes on from here.")
    return Count(failed=len(failed))


def wanted_suites(arguments: Sequence[str], checkout: Checkout) -> list[str]:
    known = [CHECK, *python_suites(checkout), PAGE, END_TO_END]
    parser = argparse.ArgumentParser(
        prog="scripts/test", description="Sets up what the tests need, and runs them."
    )
    parser.add_argument(
        "suite", nargs="*", help=f"by default all of them, in this order: {', '.join(known)}"
    )
    asked = parser.parse_args(arguments).suite or known
    if unknown := [name for name in asked if name not in known]:
        parser.error(f"no suite is called {', '.join(unknown)}: there are {', '.join(known)}")
    return [name for name in known if name in asked]


def needed_steps(checkout: Checkout, names: Sequence[str], tools: Tools) -> list[Step]:
    source = engine_source(checkout, os.environ, *this_machine())
    extras = {"dev", *extras_for(source)}
    steps = [
        venv_step(checkout, tools),
        packages_step(checkout, extras, tools),
        node_step(checkout, tools),
    ]
    if CHECK in names or PAGE in names or END_TO_END in names:
        steps.append(node_modules_step(checkout, tools))
    if set(names) - {CHECK, PAGE}:
        steps.append(model_step(checkout, tools))
    if END_TO_END in names:
        steps += [page_step(checkout, tools), chromium_step(checkout, tools)]
    return steps


def worker_steps(checkout: Checkout, names: Sequence[str], tools: Tools) -> list[Step]:
    if not set(names) & NEED_WORKER:
        return []
    return [
        worker_step(checkout, checkout.worker_venv, tools),
        worker_tests_step(checkout, tools),
    ]


def _as_step(suite: Suite, runner: SuiteRunner) -> Step:
    def run(progress: Progress) -> None:
        runner.run(suite, progress)

    return Step(suite.name, lambda: False, run, shown_lines=SHOWN_LINES)
