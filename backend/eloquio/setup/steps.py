"""Runs steps side by side, each as soon as those it needs are done."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eloquio.setup.advice import LAST_LINES, advice, last_lines
from eloquio.setup.console import Console, Progress
from eloquio.setup.tools import Interrupted, SetupFailed, ToolFailed, Tools


@dataclass(frozen=True)
class Step:
    """Something that has to be there. `make` runs only when `is_made` says no."""

    name: str
    is_made: Callable[[], bool]
    make: Callable[[Progress], None]
    after: tuple[str, ...] = ()
    shown_lines: int = LAST_LINES
    """How many of a failed tool's last lines a person wants to see."""


def run_steps(
    steps: Sequence[Step], tools: Tools, console: Console, *, at_once: int | None = None
) -> list[str]:
    """Make what isn't made, and return the names of the steps that failed or couldn't be tried.

    A failure is said at once; the other steps still go on, so that the next run has less to do.
    An exception in this thread, as Ctrl-C raises it, ends the tools that run.
    """
    missing = [step for step in steps if not step.is_made()]
    ended = {step.name: threading.Event() for step in missing}
    failed: list[str] = []
    places = threading.Semaphore(at_once or max(1, len(missing)))

    def go(step: Step) -> None:
        succeeded = False
        try:
            needed = [name for name in step.after if name in ended]
            for name in needed:
                ended[name].wait()
            if not any(name in failed for name in needed):
                with places:
                    succeeded = _succeeds(step, console)
        finally:
            if not succeeded:
                failed.append(step.name)
            ended[step.name].set()

    threads = [threading.Thread(target=go, args=(step,)) for step in missing]
    try:
        for thread in threads:
            thread.start()
        # Not by joining: before Python 3.13 an interrupted join takes its thread for ended.
        for name in ended:
            ended[name].wait()
    except BaseException:
        tools.stop()
        for step, thread in zip(missing, threads, strict=True):
            if thread.ident is not None:
                ended[step.name].wait()
        raise
    return failed


def _succeeds(step: Step, console: Console) -> bool:
    progress = console.start(step.name)
    try:
        step.make(progress)
    except Interrupted:
        console.finish(progress, "--")
        return False
    except (SetupFailed, ToolFailed, OSError) as error:
        console.finish(progress, "!!")
        console.say(explanation(step.name, error, step.shown_lines))
        return False
    console.finish(progress)
    return True


def explanation(
    name: str, error: SetupFailed | ToolFailed | OSError, shown_lines: int = LAST_LINES
) -> str:
    """What failed, the tool's last words, and what to do."""
    output = "" if isinstance(error, OSError) else error.output
    next_step = error.next_step if isinstance(error, SetupFailed) else None
    if next_step is None:
        next_step = advice(output or str(error))
    lines = [f"      {name} failed: {error}", last_lines(output, shown_lines)]
    if next_step:
        lines.append(f"      -> {next_step}")
    return "\n".join(line for line in lines if line)
