"""Runs the scenarios, several at a time, and says how each ended."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Literal

from eloquio.doctor.faults import model_files
from eloquio.doctor.faults.scenario import Broken, Scenario
from eloquio.doctor.faults.scenarios import (
    answers,
    crashes,
    idle,
    many,
    orphans,
    progress,
    retries,
    shutdown,
    starts,
    stops,
    strangers,
    workers,
)
from eloquio.doctor.faults.serving import folder_of_its_own

# What a scenario may take at the very most, on the busiest machine.
_LIMIT_SECONDS = 180.0
# Most of them wait most of the time.
_AT_ONCE_PER_CORE = 2
_MOST_AT_ONCE = 16

_THEMES = (
    starts,
    progress,
    retries,
    crashes,
    answers,
    stops,
    shutdown,
    orphans,
    strangers,
    many,
    idle,
)


@dataclass(frozen=True)
class Outcome:
    """How a scenario ended: `sentence` says what was seen."""

    name: str
    promise: str
    verdict: Literal["passed", "failed"]
    seconds: float
    sentence: str


def _in(theme: ModuleType) -> list[Scenario]:
    return [value for value in vars(theme).values() if isinstance(value, Scenario)]


# What hangs on how an engine is started, watched, asked and ended, and so on its kind.
_OF_BOTH_ENGINES = (
    starts.exits_at_once,
    starts.killed_at_the_start,
    starts.fails_once,
    starts.a_failed_load_costs_nothing,
    starts.keeps_paths_to_itself,
    progress.moves_for_long,
    progress.is_silent,
    progress.answers_garbage_for_health,
    progress.answers_garbage_for_properties,
    progress.tells_its_progress,
    crashes.crashes_in_an_answer,
    crashes.crashes_before_an_answer,
    crashes.crashes_while_idle,
    crashes.crashes_and_leaves_a_child,
    answers.fails_in_its_own_words,
    answers.sends_an_error_in_a_stream,
    answers.closes_a_stream_early,
    answers.answers_garbage,
    answers.is_cut_anywhere,
    answers.is_left_by_its_client,
    answers.is_frozen,
    stops.is_unloaded,
    stops.is_unloaded_while_it_hangs,
    stops.is_unloaded_while_it_answers,
    stops.ignores_the_request_to_end,
    shutdown.is_ended_while_starting,
    shutdown.is_ended_while_answering,
    orphans.outlives_no_kill_while_ready,
    orphans.outlives_no_kill_while_starting,
    orphans.outlives_no_kill_while_computing,
    orphans.is_found_by_the_next_start,
    many.ten_loads_of_two,
)


def _by_a_worker(scenario: Scenario) -> Scenario:
    async def act(folder: Path) -> str:
        # Each scenario has a task, and with it a context, of its own.
        model_files.ENGINE.set("worker")
        return await scenario.act(folder)

    return replace(scenario, name=f"worker-{scenario.name}", act=act)


SCENARIOS: tuple[Scenario, ...] = (
    *(found for theme in _THEMES for found in _in(theme)),
    *(_by_a_worker(scenario) for scenario in (*_OF_BOTH_ENGINES, *_in(workers))),
)


def named(part: str) -> list[Scenario]:
    """The scenarios with `part` in their names."""
    return [scenario for scenario in SCENARIOS if part in scenario.name]


async def run(
    scenarios: Sequence[Scenario], show: Callable[[Outcome], None] = lambda _: None
) -> list[Outcome]:
    """Every scenario's outcome, in the order in which they ended; `show` is told each at once."""
    outcomes: list[Outcome] = []
    turns = asyncio.Semaphore(min(_AT_ONCE_PER_CORE * (os.cpu_count() or 1), _MOST_AT_ONCE))

    async def take_turn(scenario: Scenario) -> None:
        async with turns:
            outcome = await outcome_of(scenario)
        outcomes.append(outcome)
        show(outcome)

    async with asyncio.TaskGroup() as group:
        for scenario in scenarios:
            if not scenario.is_alone:
                group.create_task(take_turn(scenario))
    for scenario in scenarios:
        if scenario.is_alone:
            await take_turn(scenario)
    return outcomes


async def outcome_of(scenario: Scenario) -> Outcome:
    started = time.monotonic()

    def ended(verdict: Literal["passed", "failed"], sentence: str) -> Outcome:
        seconds = round(time.monotonic() - started, 2)
        return Outcome(scenario.name, scenario.promise, verdict, seconds, sentence)

    try:
        async with folder_of_its_own() as folder, asyncio.timeout(_LIMIT_SECONDS):
            return ended("passed", await scenario.act(folder))
    except Broken as broken:
        return ended("failed", str(broken))
    except TimeoutError:
        return ended("failed", f"It took longer than {_LIMIT_SECONDS:g} s.")
    except Exception as error:
        return ended("failed", f"It came to no end: {type(error).__name__}: {error}")
