"""What the commands print: errors, sizes, tables."""

import re
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from eloquio.terminal.client import Json, Refused

# A terminal obeys what these say, and a model may say anything.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def output() -> Console:
    return Console(highlight=False, soft_wrap=True)


def error_output() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_refusal(error: Refused) -> None:
    """What happened, the engine's last words, and what to do; on the error output."""
    console = error_output()
    console.print(f"[bold red]{escape(printable(error.message))}[/]")
    if error.evidence:
        console.print(escape(printable(error.evidence)), style="dim")
    if error.next_step:
        console.print(escape(printable(error.next_step)))


def write(text: str) -> None:
    """A piece of an answer, at once and without the characters that steer a terminal."""
    sys.stdout.write(printable(text))
    sys.stdout.flush()


def printable(text: str) -> str:
    return _CONTROLS.sub("", text)


def size(size_bytes: float) -> str:
    """In binary units: 98 MiB, 4.7 GiB."""
    if size_bytes >= 1024**3:
        return f"{size_bytes / 1024**3:.1f} GiB"
    return f"{size_bytes / 1024**2:.0f} MiB"


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def print_status(status: Json) -> None:
    """The engines as a table, or a sentence if there are none; what sleeps, and what to know."""
    console = output()
    if status["engines"]:
        console.print(_engine_table(status["engines"]))
    elif not status["asleep"]:
        console.print("No model is loaded. Load one with: eloquio load MODEL")
    for model in status["asleep"]:
        console.print(f"{escape(printable(model))} is asleep: the next request for it wakes it.")
    for engine in status["engines"]:
        for warning in (engine["loaded"] or {}).get("warnings", ()):
            console.print(escape(printable(f"{engine['model']}: {warning}")), style="yellow")


def _engine_table(engines: Sequence[Json]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("model", "state", "context", "memory", "busy", "up"):
        table.add_column(column)
    for engine in engines:
        table.add_row(*_engine_row(engine))
    return table


def _engine_row(engine: Json) -> tuple[str, ...]:
    loaded = engine["loaded"] or {}
    held_bytes = engine["resident_bytes"] or engine["memory"]["total"]
    return (
        escape(printable(engine["model"])),
        _state(engine["status"]),
        str(loaded.get("context_length", "-")),
        size(held_bytes),
        str(engine["busy"]),
        "-" if engine["uptime_s"] is None else duration(engine["uptime_s"]),
    )


def _state(status: Json) -> str:
    match status["state"]:
        case "failed":
            return f"failed: {escape(printable(status['error']['message']))}"
        case "starting":
            return f"starting, {duration(status['elapsed_seconds'])}"
        case state:
            return str(state)
