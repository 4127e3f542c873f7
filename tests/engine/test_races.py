"""What happens when loads, requests, crashes and unloads meet: each with an engine told to fail."""

import asyncio
import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import replace

import aiohttp
import psutil
import pytest

from eloquio.doctor.faults import gguf_file, stand_in
from eloquio.engines import readiness, relay
from eloquio.engines.state import Failed, Ready, Starting, Stopping
from eloquio.errors import (
    EloquioError,
    EngineCrashed,
    EngineUnavailable,
    LoadCancelled,
    ModelUnloaded,
    NoModelLoaded,
)
from eloquio.models import describe
from eloquio.models.loading import terms
from eloquio.models.schema import LoadRequest
from eloquio.settings import Settings
from fixtures.pools import load, pool_of, until, with_engine

pytestmark = pytest.mark.anyio

PATH = "/v1/chat/completions"


@pytest.fixture
def settings(tmp_path):
    home = tmp_path / "home"
    for name in ("a", "b"):
        gguf_file.write_model(home / "models" / f"{name}.gguf")
    return Settings(home=home, hf_home=tmp_path / "hf", load_on_start=False)


async def ask(pool, model):
    async with pool.lease(model) as (engine, client):
        try:
            async with client.get("/health") as reply:
                assert reply.status == 200
        except aiohttp.ClientError:
            raise await engine.cause_of_loss(client) from None
        return engine


def kill(engine):
    os.kill(engine.pid, signal.SIGKILL)


async def being_planned(planning):
    planning.set()
    await asyncio.Event().wait()


# Restarts ------------------------------------------------------------------------------------


async def test_requests_during_a_second_start_without_a_part_are_all_answered(settings, tmp_path):
    refused = ["--slots", "error: invalid argument: --slots"]
    settings = with_engine(settings, tmp_path, fails_with=refused, moves_seconds=0.3)
    async with pool_of(settings) as pool:
        loading = asyncio.create_task(load(pool, "a"))
        await until(lambda: pool.engines)
        requests = []
        while not loading.done():
            requests.append(asyncio.create_task(ask(pool, "a")))
            await asyncio.sleep(0.01)
        await loading
        async with asyncio.timeout(20):
            await asyncio.gather(*requests)


async def test_a_load_with_the_same_settings_joins_a_restart(settings, tmp_path):
    async with pool_of(with_engine(settings, tmp_path, moves_seconds=1)) as pool:
        engine, _ = await load(pool, "a")
        kill(engine)
        await until(lambda: engine.starts == 2 and engine.pid)
        waiting = asyncio.create_task(ask(pool, "a"))
        await until(lambda: engine.waiting)
        assert isinstance(engine.state, Starting)
        again, was_loaded = await load(pool, "a")
        assert (again, was_loaded) == (engine, False)
        assert await waiting is engine


async def test_a_load_with_other_settings_takes_those_along_who_wait_for_a_restart(
    settings, tmp_path
):
    async with pool_of(with_engine(settings, tmp_path, moves_seconds=1)) as pool:
        engine, _ = await load(pool, "a")
        kill(engine)
        await until(lambda: engine.starts == 2 and engine.pid)
        waiting = asyncio.create_task(ask(pool, "a"))
        await until(lambda: engine.waiting)
        fresh, _ = await load(pool, "a", max_seq_length=2048)
        assert await waiting is fresh


async def test_a_request_without_a_model_waits_for_the_restart_of_the_one_loaded(
    settings, tmp_path
):
    async with pool_of(with_engine(settings, tmp_path, moves_seconds=0.5)) as pool:
        engine, _ = await load(pool, "a")
        kill(engine)
        await until(lambda: engine.starts == 2)
        assert await ask(pool, None) is engine


async def test_a_request_without_a_model_is_told_of_the_back_off(settings, tmp_path):
    async with pool_of(with_engine(settings, tmp_path)) as pool:
        engine, _ = await load(pool, "a")
        kill(engine)
        await until(lambda: engine.starts == 2 and isinstance(engine.state, Ready))
        kill(engine)
        await until(lambda: isinstance(engine.state, Failed))
        with pytest.raises(EngineUnavailable):
            await ask(pool, None)


async def test_a_failed_engine_is_not_started_by_a_request_for_which_there_is_no_room(
    settings, tmp_path, monkeypatch
):
    async with pool_of(with_engine(settings, tmp_path, fails_starts=1)) as pool:
        with pytest.raises(EloquioError):
            await load(pool, "a")
        known = pool.ledger()
        full = replace(known, promised_bytes=known.main.total_bytes)
        monkeypatch.setattr(pool._room, "ledger", lambda: full)
        monkeypatch.setattr(pool._back_offs["a"], "_not_before", 0.0)
        with pytest.raises(EloquioError) as refusal:
            await ask(pool, "a")
        assert refusal.value.code == "model_does_not_fit"


async def test_a_reader_that_comes_late_is_told_how_the_engine_ended(settings, tmp_path):
    async with pool_of(with_engine(settings, tmp_path, repeats=1, then="crash")) as pool:
        await load(pool, "a")

        async def read_late():
            async with pool.lease("a") as (engine, client):
                async for _ in relay.stream(engine, client, PATH, b'{"stream":true}'):
                    await until(lambda: engine.starts == 2 and isinstance(engine.state, Ready))

        with pytest.raises(EngineCrashed) as crash:
            await read_late()
        assert "SIGSEGV" in crash.value.message


async def test_an_engine_that_dies_before_it_can_describe_itself_is_told_by_its_end(
    settings, tmp_path, monkeypatch
):
    real = readiness.is_listened_by

    async def kills_it_first(address, pid):
        os.kill(pid, signal.SIGKILL)
        return await real(address, pid)

    monkeypatch.setattr(readiness, "is_listened_by", kills_it_first)
    async with pool_of(with_engine(settings, tmp_path)) as pool:
        with pytest.raises(EloquioError) as failure:
            await load(pool, "a")
        assert failure.value.code == "engine_killed"


# A person and a request ----------------------------------------------------------------------


async def test_a_request_does_not_replace_what_a_person_is_loading(settings, tmp_path):
    async with pool_of(with_engine(settings, tmp_path)) as pool:
        looked_at = asyncio.Event()

        async def slow_plan():
            await looked_at.wait()
            return await pool.planner.plan(LoadRequest(model_path="a", max_seq_length=2048))

        loading = asyncio.create_task(pool.load("a", slow_plan))
        await until(lambda: pool.resolving)
        asking = asyncio.create_task(ask(pool, "a"))
        # The request's own plan is made, and waits for the one that was asked for before.
        await until(lambda: len(pool._loads) == 2 and not pool.resolving[1:])
        looked_at.set()
        engine, _ = await loading
        assert await asking is engine
        assert engine.spec.options.context_length == 2048


async def test_settings_that_never_worked_are_not_what_a_request_wakes(settings, tmp_path):
    settings = with_engine(settings, tmp_path, fails_with=["--parallel", "error: no"])
    async with pool_of(settings) as pool:
        await load(pool, "a", max_seq_length=2048)
        with pytest.raises(EloquioError):
            await load(pool, "a", n_parallel=2)
        await load(pool, "b")
        pool._back_offs.clear()
        assert (await ask(pool, "a")).spec.options == (
            await pool.planner.plan(LoadRequest(model_path="a", max_seq_length=2048))
        ).options


async def test_a_model_that_was_replaced_on_disk_while_it_slept_is_looked_at_anew(
    settings, tmp_path
):
    async with pool_of(with_engine(settings, tmp_path)) as pool:
        await load(pool, "a", ttl_s=0.2)
        await until(lambda: not pool.engines)
        gguf_file.write_model(settings.models_dir / "a.gguf", context_length=1024)
        assert (await ask(pool, "a")).spec.context_length == 1024


async def test_a_model_that_wakes_comes_back_beside_the_one_it_slept_beside(settings, tmp_path):
    async with pool_of(with_engine(settings, tmp_path)) as pool:
        await load(pool, "a", ttl_s=0.2)
        await load(pool, "b", keep_others=True)
        await until(lambda: len(pool.engines) == 1)
        assert list(pool.asleep) == ["a"]
        await ask(pool, "a")
        assert {engine.spec.model for engine in pool.engines} == {"a", "b"}
        assert list(pool.asleep) == []


async def test_two_models_that_stay_because_one_was_asked_meanwhile_is_told(settings, tmp_path):
    stand_in.write_for(settings.models_dir / "b.gguf", moves_seconds=1)
    async with pool_of(with_engine(settings, tmp_path)) as pool:
        await load(pool, "a")
        loading = asyncio.create_task(load(pool, "b"))
        await until(lambda: len(pool.engines) == 2)
        async with pool.lease("a"):
            engine, _ = await loading
        assert engine.warnings == ["a stays loaded beside it: it was asked meanwhile."]


async def test_what_would_happen_is_told_of_a_model_that_is_loaded_already(settings, tmp_path):
    async with pool_of(with_engine(settings, tmp_path)) as pool:
        await load(pool, "a")
        request = LoadRequest(model_path="a", force=True)
        placement = await pool.placement(await pool.planner.plan(request), terms(request))
        assert describe.validation(placement).stops == []


# Unloads -------------------------------------------------------------------------------------


async def test_an_unload_by_a_persons_name_for_it_ends_the_model_and_what_is_being_planned(
    settings, tmp_path
):
    async with pool_of(with_engine(settings, tmp_path)) as pool:
        await load(pool, "a.gguf")
        planning = asyncio.Event()
        again = asyncio.create_task(pool.load("a.gguf", lambda: being_planned(planning)))
        await planning.wait()
        assert await pool.unload("a.gguf") == "a"
        with pytest.raises(LoadCancelled):
            await again
        assert pool.engines == []


async def test_a_request_that_waited_for_a_model_that_is_unloaded_is_told_so(settings, tmp_path):
    async with pool_of(with_engine(settings, tmp_path, moves_seconds=20)) as pool:
        waiting = asyncio.create_task(ask(pool, "a"))
        await until(lambda: pool.engines and pool.engines[0].pid)
        await pool.unload("a")
        with pytest.raises(ModelUnloaded):
            await waiting


async def test_a_model_unloaded_while_it_sleeps_is_not_woken_by_a_request_that_names_none(
    settings, tmp_path
):
    async with pool_of(with_engine(settings, tmp_path)) as pool:
        await load(pool, "a", ttl_s=0.2)
        await until(lambda: not pool.engines)
        assert await pool.unload("a") is None
        with pytest.raises(NoModelLoaded):
            await ask(pool, None)


async def test_a_load_waits_for_the_memory_of_a_model_that_is_stopping(
    settings, tmp_path, monkeypatch
):
    settings = with_engine(settings, tmp_path, ignores_sigterm=True)
    async with pool_of(settings.model_copy(update={"stop_grace_seconds": 1.0})) as pool:
        needed = (await pool.planner.plan_by_name("a")).memory.total_bytes
        real = pool._room.ledger

        def room_for_one_and_a_half():
            known = real()
            held = sum(engine.held_bytes() for engine in pool.engines)
            left = max(0, needed * 3 // 2 - held)
            return replace(known, promised_bytes=known.promised_bytes + known.free_bytes - left)

        await load(pool, "a", keep_others=True)
        monkeypatch.setattr(pool._room, "ledger", room_for_one_and_a_half)
        unloading = asyncio.create_task(pool.unload("a"))
        await until(lambda: isinstance(pool.engines[0].state, Stopping))
        engine, _ = await load(pool, "b", keep_others=True, max_seq_length=2048)
        await unloading
        assert isinstance(engine.state, Ready)


async def test_a_shutdown_shortens_the_time_of_an_engine_that_is_stopping(settings, tmp_path):
    settings = with_engine(settings, tmp_path, ignores_sigterm=True)
    async with pool_of(settings.model_copy(update={"stop_grace_seconds": 60.0})) as pool:
        await load(pool, "a")
        unloading = asyncio.create_task(pool.unload("a"))
        await until(lambda: isinstance(pool.engines[0].state, Stopping))
        async with asyncio.timeout(20):
            await pool.close()
        await unloading


async def test_an_ended_engine_leaves_no_file(settings, tmp_path):
    async with pool_of(with_engine(settings, tmp_path)) as pool:
        for context in (2048, 2049):
            await load(pool, "a", max_seq_length=context)
        await pool.unload("a")
        assert [path.name for path in pool._run_folder.path.iterdir()] == ["lock"]


# Everything at once --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
async def test_whatever_comes_in_whatever_order_ends_with_a_definite_answer(
    settings, tmp_path, seed
):
    """No unload and no force here: so nobody may be told that a model was taken away."""
    chance = random.Random(seed)
    answers = set()
    ways = (
        lambda pool, model: ask(pool, model),
        lambda pool, model: load(pool, model, keep_others=True),
        lambda pool, model: load(pool, model, max_seq_length=2048),
        lambda pool, model: load(pool, model, ttl_s=0.05, keep_others=True),
    )

    async def want_things(pool, end):
        while time.monotonic() < end:
            try:
                async with asyncio.timeout(30):
                    await chance.choice(ways)(pool, chance.choice("ab"))
            except EloquioError as error:
                answers.add(error.code)
            await asyncio.sleep(chance.uniform(0, 0.1))

    async def kill_now_and_then(pool, end):
        while time.monotonic() < end:
            await asyncio.sleep(chance.uniform(0.3, 1.2))
            if pids := [engine.pid for engine in pool.engines if engine.pid]:
                with suppress(ProcessLookupError):
                    os.kill(chance.choice(pids), signal.SIGKILL)

    async with pool_of(with_engine(settings, tmp_path, moves_seconds=0.15)) as pool:
        end = time.monotonic() + 6
        wanting = [want_things(pool, end) for _ in range(6)]
        await asyncio.gather(kill_now_and_then(pool, end), *wanting)
        assert not pool._idle_watch.done()
        assert not pool.is_loading
        assert not any(pool._roster._claims.values())
    assert answers <= {"engine_busy", "engine_unavailable", "engine_killed", "engine_crashed"}
    assert psutil.Process().children() == []
