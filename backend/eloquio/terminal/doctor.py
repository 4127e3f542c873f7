"""Shows what the doctor finds."""

import asyncio
import json
import logging
from dataclasses import asdict

import structlog
from rich.markup import escape

from eloquio.doctor.check import Check
from eloquio.doctor.visit import visit
from eloquio.settings import Settings
from eloquio.terminal.text import output, printable, write

_SIGNS = {"ok": "[green]ok  [/]", "warn": "[yellow]warn[/]", "fail": "[bold red]fail[/]"}


def examine(settings: Settings, *, as_json: bool) -> int:
    """Look at everything, print it, and return the exit status: 1 if something failed."""
    # What went wrong stands in the checks: log lines between them would say it twice.
    quiet = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=quiet)
    checks = asyncio.run(_examine(settings, show=not as_json))
    if as_json:
        write(json.dumps([asdict(check) for check in checks], indent=2, ensure_ascii=False) + "\n")
    return int(any(check.verdict == "fail" for check in checks))


async def _examine(settings: Settings, *, show: bool) -> list[Check]:
    checks: list[Check] = []
    async for check in visit(settings):
        checks.append(check)
        if show:
            _show(check)
    return checks


def _show(check: Check) -> None:
    console = output()
    console.print(f"{_SIGNS[check.verdict]}  {check.name:<15} {escape(printable(check.sentence))}")
    for more in (check.evidence, check.next_step):
        if more:
            console.print(f"{'':22}{escape(printable(more))}", style="dim")
