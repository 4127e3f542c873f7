"""Each scenario of the fault suite as a test; they run several at a time, as for a person."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import pytest

from eloquio.doctor.faults.scenario import Scenario
from eloquio.doctor.faults.suite import SCENARIOS, Outcome, run


class Run:
    """The scenarios under way in a thread of their own; each outcome can be waited for."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self.outcomes: dict[str, Future[Outcome]] = {s.name: Future() for s in scenarios}
        self._scenarios = scenarios
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(run(scenarios, self._show))
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        self._loop.run_until_complete(asyncio.wait([self._task]))
        for outcome in self.outcomes.values():
            outcome.cancel()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())

    def _show(self, outcome: Outcome) -> None:
        self.outcomes[outcome.name].set_result(outcome)


@pytest.fixture(scope="session")
def promises(request: pytest.FixtureRequest) -> Iterator[Run]:
    """All scenarios that this session's tests ask for, begun at once."""
    tests = [getattr(item, "callspec", None) for item in request.session.items]
    chosen = [test.params["scenario"] for test in tests if test and "scenario" in test.params]
    running = Run(chosen)
    yield running
    running.end()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_supervisor_keeps_its_promise(promises: Run, scenario: Scenario):
    outcome = promises.outcomes[scenario.name].result()
    assert outcome.verdict == "passed", f"{scenario.promise}\n{outcome.sentence}"
