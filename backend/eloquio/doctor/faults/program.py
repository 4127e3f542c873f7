"""The process that a stand-in is: its command line, its notes, its end."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

FOR_EVER_SECONDS = 600


_OF_A_PLAN = {"--model": "model_path", "--alias": "model"}


def is_worker() -> bool:
    return "--plan" in sys.argv


def argument(name: str) -> str:
    """What follows `name` in the command line; empty where it isn't there.

    A worker is told by other names, most of them in its plan.
    """
    if is_worker():
        if name in _OF_A_PLAN:
            plan: dict[str, Any] = json.loads(Path(_following("--plan")).read_bytes())
            return str(plan[_OF_A_PLAN[name]])
        name = {"--host": "--socket"}.get(name, name)
    return _following(name)


def _following(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else ""


def notes(program: Path) -> list[dict[str, Any]]:
    """What happened to the stand-ins of this program, in order."""
    try:
        lines = program.with_suffix(".notes").read_text().splitlines()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines]


def note(event: str, **more: object) -> None:
    """Adds to what `notes` tells of this program."""
    told = {"event": event, "model": argument("--alias"), "pid": os.getpid()} | more
    # In one piece, since others write there too.
    with Path(sys.argv[0]).with_suffix(".notes").open("ab", buffering=0) as file:
        file.write(json.dumps(told).encode() + b"\n")


def die_by(number: int) -> NoReturn:
    """By that signal, and without leaving a core file."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), number)
    # The signal may be taken by another thread: this one goes no further until it is.
    time.sleep(FOR_EVER_SECONDS)
    os._exit(1)
