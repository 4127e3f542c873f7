"""Shows how the fault suite goes."""

import asyncio
import json
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict

from rich.markup import escape

from eloquio.doctor.faults.scenario import Scenario
from eloquio.doctor.faults.suite import Outcome, named, run
from eloquio.terminal.text import error_output, output, printable, write

_SIGNS = {"passed": "[green]passed[/]", "failed": "[bold red]failed[/]"}
_NOTHING_CHOSEN, _INTERRUPTED = 2, 130


def prove(part: str, *, as_json: bool) -> int:
    """Run the scenarios with `part` in their names; the exit status is 1 if any failed.

    Each has a home of its own, so nothing of the person's is touched.
    """
    scenarios = named(part)
    if not scenarios:
        error_output().print(f"No scenario has {escape(part)!r} in its name.")
        return _NOTHING_CHOSEN
    started = time.monotonic()
    try:
        outcomes = asyncio.run(_run(scenarios, show=not as_json))
    except (KeyboardInterrupt, asyncio.CancelledError):
        error_output().print("Interrupted: what was started is ended.")
        return _INTERRUPTED
    failed = sum(outcome.verdict == "failed" for outcome in outcomes)
    passed, seconds = len(outcomes) - failed, round(time.monotonic() - started, 1)
    if as_json:
        told = [asdict(outcome) for outcome in outcomes]
        report = {"passed": passed, "failed": failed, "seconds": seconds, "scenarios": told}
        write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    else:
        output().print(f"In {seconds} s:\n{passed} passed, {failed} failed")
    return int(failed > 0)


async def _run(scenarios: Sequence[Scenario], *, show: bool) -> list[Outcome]:
    task = asyncio.current_task()
    assert task is not None
    # As Ctrl-C does: what runs has processes to end.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    width = max(len(scenario.name) for scenario in scenarios)
    return await run(scenarios, lambda outcome: _show(outcome, width) if show else None)


def _show(outcome: Outcome, width: int) -> None:
    console = output()
    sentence = escape(printable(outcome.sentence))
    console.print(
        f"{_SIGNS[outcome.verdict]}  {outcome.name:<{width}}  {outcome.seconds:5.1f} s  {sentence}"
    )
    if outcome.verdict == "failed":
        console.print(f"{'':{width + 19}}{escape(outcome.promise)}", style="dim")
