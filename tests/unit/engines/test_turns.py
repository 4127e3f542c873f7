"""Whose turn it is at an engine's slots."""

import asyncio

import pytest

from eloquio.engines.turns import Turns
from eloquio.errors import QueueFull

pytestmark = pytest.mark.anyio


async def waiting(turns, slots=1):
    """A request in the queue."""
    task = asyncio.create_task(turns.take(slots))
    await asyncio.sleep(0)
    return task


async def has_turn(task):
    for _ in range(3):
        await asyncio.sleep(0)
    return task.done() and task.result()


async def test_as_many_as_there_are_slots_begin_at_once():
    turns = Turns(2, most_waiting=9)
    assert await turns.take(1)
    assert await turns.take(1)
    third = await waiting(turns)
    assert not await has_turn(third)
    turns.give_back(1)
    assert await has_turn(third)


async def test_turns_come_in_the_order_of_coming():
    turns = Turns(1, most_waiting=9)
    await turns.take(1)
    first, second = await waiting(turns), await waiting(turns)
    turns.give_back(1)
    assert await has_turn(first)
    assert not await has_turn(second)


async def test_nobody_overtakes_one_that_needs_several():
    turns = Turns(2, most_waiting=9)
    await turns.take(1)
    large, small = await waiting(turns, slots=2), await waiting(turns)
    assert not await has_turn(small)
    turns.give_back(1)
    assert await has_turn(large)
    assert not await has_turn(small)


async def test_who_leaves_the_queue_lets_those_behind_pass():
    turns = Turns(2, most_waiting=9)
    await turns.take(1)
    large, small = await waiting(turns, slots=2), await waiting(turns)
    large.cancel()
    assert await has_turn(small)


async def test_a_turn_is_not_lost_with_who_leaves_as_it_comes():
    turns = Turns(1, most_waiting=9)
    await turns.take(1)
    first, second = await waiting(turns), await waiting(turns)
    turns.give_back(1)
    first.cancel()
    assert await has_turn(second)


async def test_a_full_queue_refuses_the_next():
    turns = Turns(1, most_waiting=1)
    await turns.take(1)
    queued = await waiting(turns)
    with pytest.raises(QueueFull) as refusal:
        await turns.take(1)
    assert refusal.value.status == 429
    assert refusal.value.retry_after_seconds
    turns.close()
    assert await queued is False


async def test_the_engines_end_sends_everybody_away():
    turns = Turns(1, most_waiting=9)
    await turns.take(1)
    queued = await waiting(turns)
    turns.close()
    assert await queued is False
    assert await turns.take(1) is False
