"""What a scenario is: a promise, and the function that puts it to the test."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

# Far more than any promise needs: a busy machine is no broken promise.
PATIENCE_SECONDS = 45.0
_POLL_SECONDS = 0.05

Seen = TypeVar("Seen")


class Broken(Exception):
    """A promise was broken; the sentence says what was seen instead."""


@dataclass(frozen=True)
class Scenario:
    """`act` is given a folder of its own; it answers with what it saw, or raises Broken."""

    name: str
    promise: str
    act: Callable[[Path], Awaitable[str]]
    is_alone: bool = False
    """Whether nothing else may keep the machine busy meanwhile: it measures time."""


def proves(
    promise: str, *, is_alone: bool = False
) -> Callable[[Callable[[Path], Awaitable[str]]], Scenario]:
    """Makes a function the scenario that proves `promise`, under the function's name."""

    def scenario(act: Callable[[Path], Awaitable[str]]) -> Scenario:
        name: str = getattr(act, "__name__", "")
        return Scenario(name.replace("_", "-"), promise, act, is_alone)

    return scenario


def expect(claim: object, otherwise: str) -> None:
    """Broken with the sentence `otherwise` unless the claim holds."""
    if not claim:
        raise Broken(otherwise)


async def until(
    look: Callable[[], Awaitable[Seen | None]],
    otherwise: str,
    seconds: float = PATIENCE_SECONDS,
) -> Seen:
    """Looks again and again, and answers the first thing seen that is true.

    Broken with the sentence `otherwise` when nothing was in time.
    """
    deadline = time.monotonic() + seconds
    while not (seen := await look()):
        if time.monotonic() > deadline:
            raise Broken(f"{otherwise} (after {seconds:g} s)")
        await asyncio.sleep(_POLL_SECONDS)
    return seen


@asynccontextmanager
async def meanwhile(work: Coroutine[Any, Any, Seen]) -> AsyncIterator["asyncio.Task[Seen]"]:
    """`work` under way during the block, and given up at its end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
