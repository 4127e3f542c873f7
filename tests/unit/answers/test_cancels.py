"""The ids by which answers under way are cancelled."""

import asyncio

import pytest

from eloquio.answers.cancels import Cancels

pytestmark = pytest.mark.anyio


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


async def run(cancels, cancel_id):
    """An answer that goes on until it is cancelled; answers whether it was."""
    work = asyncio.create_task(asyncio.sleep(3600))
    with cancels.over(cancel_id, work.cancel):
        await asyncio.wait({work})
    return work.cancelled()


async def test_a_cancel_ends_the_answers_of_its_id_and_no_other():
    cancels = Cancels()
    one, same, other = (asyncio.create_task(run(cancels, each)) for each in "aab")
    await asyncio.sleep(0)
    assert await cancels.cancel("a") == "cancelled"
    assert await one
    assert await same
    assert not other.done()
    assert await cancels.cancel("b") == "cancelled"
    assert await other


async def test_one_that_comes_early_hits_its_request_when_that_comes():
    cancels = Cancels()
    assert await cancels.cancel("a") == "expected"
    assert await run(cancels, "a")


async def test_an_early_one_is_forgotten_after_a_while():
    clock = Clock()
    cancels = Cancels(clock)
    await cancels.cancel("a")
    clock.now += 60
    going = asyncio.create_task(run(cancels, "a"))
    await asyncio.sleep(0)
    assert await cancels.cancel("a") == "cancelled"
    assert await going


async def test_one_that_comes_late_or_twice_does_not_hit_the_next_of_its_id():
    cancels = Cancels()
    with cancels.over("a", lambda: None):
        pass
    assert await cancels.cancel("a") == "ended"
    assert await cancels.cancel("a") == "ended"
    was_hit = []
    with cancels.over("a", lambda: was_hit.append(True)):
        pass
    assert not was_hit


async def test_what_has_no_id_is_hit_by_nothing():
    cancels = Cancels()
    with cancels.over(None, lambda: pytest.fail("it was hit")):
        assert await cancels.cancel("None") == "expected"
