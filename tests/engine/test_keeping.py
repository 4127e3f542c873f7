"""How long models stay: idle time-outs, pins, several at once, and what is remembered of them."""

import asyncio
import random

import psutil
import pytest

from eloquio.engines.state import Failed, Ready
from eloquio.errors import (
    EngineBusy,
    EngineUnavailable,
    LoadCancelled,
    ModelDoesNotFit,
    NoModelLoaded,
)
from fixtures.pools import is_alive, load, pool_of, until, with_engine
from fixtures.running import BUILTIN, place

pytestmark = pytest.mark.anyio


@pytest.fixture
async def pool(settings, tiny_model):
    place(tiny_model, settings.models_dir / "tiny.gguf")
    place(tiny_model, settings.models_dir / "twin.gguf")
    async with pool_of(settings) as pool:
        yield pool


async def asleep(pool, model):
    await until(lambda: model not in {engine.spec.model for engine in pool.engines})


# Idle time-outs ------------------------------------------------------------------------------


async def test_an_idle_model_is_unloaded_after_its_time_and_wakes_as_it_was(pool):
    engine, _ = await load(pool, "tiny", ttl_s=0.2, max_seq_length=1024, cache_type_kv="q8_0")
    pid = engine.pid
    await asleep(pool, "tiny")
    assert not is_alive(pid)
    async with pool.lease("tiny") as (again, _):
        assert again.facts.context_length == 1024
        assert again.spec.options.cache_type_kv == "q8_0"
        assert again.keeping.ttl_seconds == 0.2
    await asleep(pool, "tiny")


async def test_a_request_that_names_no_model_wakes_the_one_that_fell_asleep(pool):
    await load(pool, "tiny", ttl_s=0.1)
    await asleep(pool, "tiny")
    async with pool.lease(None) as (engine, _):
        assert engine.spec.model == "tiny"
    assert await pool.unload("tiny") == "tiny"
    with pytest.raises(NoModelLoaded):
        async with pool.lease(None):
            pass


async def test_a_request_under_way_keeps_a_model_awake(pool):
    engine, _ = await load(pool, "tiny", ttl_s=0.3)
    async with pool.lease("tiny"):
        await asyncio.sleep(0.8)  # longer than its idle time, which is what is tested
        assert isinstance(engine.state, Ready)
        assert engine.ttl_left_seconds == 0.3
    await asleep(pool, "tiny")


async def test_a_pinned_model_has_no_idle_time_until_the_pin_is_taken_away(pool):
    engine, _ = await load(pool, "tiny", ttl_s=0.2, pin=True)
    assert engine.ttl_left_seconds is None
    again, was_loaded = await load(pool, "tiny", ttl_s=0.2)
    assert again is engine
    assert was_loaded
    await asleep(pool, "tiny")


async def test_the_settings_idle_time_is_for_loads_that_name_none(settings, tiny_model):
    place(tiny_model, settings.models_dir / "tiny.gguf")
    async with pool_of(settings.model_copy(update={"idle_unload_seconds": 0.2})) as pool:
        await load(pool, "tiny", ttl_s=0)
        assert pool.active.keeping.ttl_seconds is None
        await load(pool, "tiny")
        assert pool.active.keeping.ttl_seconds == 0.2
        await asleep(pool, "tiny")


async def test_two_hundred_requests_around_the_end_of_an_idle_time_are_all_answered(
    settings, tmp_path, tiny_model
):
    """Each comes within a second of the moment at which its model is about to be unloaded."""
    chance = random.Random(7)
    names = [f"model-{number}" for number in range(20)]
    for name in names:
        place(tiny_model, settings.models_dir / f"{name}.gguf")

    async def race(pool, name):
        for _ in range(10):
            await load(pool, name, ttl_s=1, keep_others=True)
            await asyncio.sleep(chance.uniform(0, 2))
            async with pool.lease(name) as (engine, client):
                assert (await client.get("/health")).status == 200
                assert engine.spec.model == name

    async with pool_of(with_engine(settings, tmp_path)) as pool:
        await asyncio.gather(*(race(pool, name) for name in names))
        starts = {engine.spec.model: engine.starts for engine in pool.engines}
        assert set(starts.values()) <= {1}
        pids = [engine.pid for engine in pool.engines]
    assert not any(is_alive(pid) for pid in pids if pid)
    assert psutil.Process().children() == []


# Several at once -----------------------------------------------------------------------------


async def test_a_pinned_model_stays_when_another_of_its_task_is_loaded(pool):
    pinned, _ = await load(pool, "tiny", pin=True)
    await load(pool, "twin")
    assert isinstance(pinned.state, Ready)
    await load(pool, BUILTIN)
    assert {engine.spec.model for engine in pool.engines} == {"tiny", BUILTIN}
    assert await pool.unload("tiny") == "tiny"


async def test_the_least_recently_used_makes_room_and_that_is_told(pool, monkeypatch):
    await load(pool, "tiny", max_seq_length=1024)
    await load(pool, "twin", max_seq_length=1024, keep_others=True)
    async with pool.lease("tiny"):
        pass
    # As much as the built-in model needs, less one byte.
    needed = (await pool.planner.plan_by_name(BUILTIN)).memory.total_bytes
    real = pool.ledger()
    left = type(real)(real.main, real.devices, real.promised_bytes + real.free_bytes - needed + 1)
    monkeypatch.setattr(pool._room, "ledger", lambda: left)
    engine, _ = await load(pool, BUILTIN, keep_others=True)
    assert {e.spec.model for e in pool.engines} == {"tiny", BUILTIN}
    assert "twin was unloaded to make room." in engine.warnings


async def test_what_is_loaded_is_taken_off_what_is_free(pool):
    before = pool.ledger()
    engine, _ = await load(pool, BUILTIN)
    after = pool.ledger()
    assert after.promised_bytes == engine.promised_bytes() > 0
    await pool.unload(BUILTIN)
    assert pool.ledger().promised_bytes == before.promised_bytes == 0


async def test_loads_at_once_do_not_count_on_the_same_memory(pool, monkeypatch):
    """Room for one more: of two that are asked for together, the second takes the first's place."""
    plan = await pool.planner.plan_by_name("tiny")
    real = pool._room.ledger

    def scarce():
        known = real()
        held = sum(engine.held_bytes() for engine in pool.engines)
        room = plan.memory.total_bytes * 3 // 2 - held
        return type(known)(
            known.main, known.devices, known.promised_bytes + known.free_bytes - max(0, room)
        )

    monkeypatch.setattr(pool._room, "ledger", scarce)
    await asyncio.gather(
        *(load(pool, name, keep_others=True, max_seq_length=8192) for name in ("tiny", "twin"))
    )
    assert len(pool.engines) == 1
    with pytest.raises((EngineBusy, ModelDoesNotFit)):
        async with pool.lease(pool.engines[0].spec.model):
            await load(pool, BUILTIN, keep_others=True, max_seq_length=8192)


# Unloading -----------------------------------------------------------------------------------


async def test_an_unload_without_force_leaves_a_model_that_answers(pool):
    engine, _ = await load(pool, "tiny")
    async with pool.lease("tiny"):
        with pytest.raises(EngineBusy):
            await pool.unload("tiny", force=False)
        assert isinstance(engine.state, Ready)
    assert await pool.unload("tiny", force=False) == "tiny"


async def test_an_unload_while_a_load_is_still_being_planned_cancels_it(pool):
    planning = asyncio.Event()

    async def never():
        planning.set()
        await asyncio.Event().wait()

    loading = asyncio.create_task(pool.load("some/where:else", never))
    await planning.wait()
    assert list(pool.resolving) == ["some/where:else"]
    assert await pool.unload("some/where:else") == "some/where:else"
    with pytest.raises(LoadCancelled):
        await loading
    assert list(pool.resolving) == []


async def test_two_broken_models_asked_for_in_turns_are_not_started_again_and_again(
    settings, tmp_path, tiny_model
):
    place(tiny_model, settings.models_dir / "tiny.gguf")
    refused = 0
    async with pool_of(with_engine(settings, tmp_path, exits=1)) as pool:
        for turn in range(40):
            with pytest.raises(Exception) as failure:  # noqa: PT011 - either of two, told below
                async with pool.lease(("tiny", BUILTIN)[turn % 2]):
                    pass
            refused += isinstance(failure.value, EngineUnavailable)
        assert refused >= 36
        assert all(isinstance(engine.state, Failed) for engine in pool.engines)
