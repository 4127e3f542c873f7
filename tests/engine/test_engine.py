"""The supervisor with the real llama-server, and with a stand-in where a part has to fail."""

import asyncio
import os
import signal

import psutil
import pytest

from eloquio.doctor.faults import stand_in
from eloquio.engines.engine import EngineIsGone
from eloquio.engines.state import Failed, Ready, Starting, Stopped, Stopping
from eloquio.errors import (
    EngineBusy,
    EngineIllegalInstruction,
    EngineMissing,
    EngineNoProgress,
    EngineOutOfMemory,
    EngineSocketFailed,
    EngineStartFailed,
    EngineUnavailable,
    LoadCancelled,
    ModelDoesNotFit,
    NoModelLoaded,
    ShuttingDown,
)
from fixtures.gguf_files import write_projector
from fixtures.pools import is_alive, load, pool_of, until, with_engine
from fixtures.running import BUILTIN, place

pytestmark = pytest.mark.anyio


@pytest.fixture
async def pool(settings, tiny_model):
    place(tiny_model, settings.models_dir / "tiny.gguf")
    async with pool_of(settings) as pool:
        yield pool


# With the real llama-server ------------------------------------------------------------------


async def test_a_loaded_engine_tells_what_it_made_of_what_was_asked(pool):
    engine, was_loaded = await load(pool, BUILTIN, max_seq_length=2048, cache_type_kv="q8_0")
    assert not was_loaded
    assert engine.facts.context_length == 2048
    assert engine.warnings == []
    assert "<|im_start|>" in engine.facts.chat_template
    command = psutil.Process(engine.pid).cmdline()
    assert command[command.index("--cache-type-k") + 1] == "q8_0"
    assert command[command.index("--temperature") + 1] == "0.7"


async def test_slots_that_were_asked_for_share_the_whole_context(pool):
    engine, _ = await load(pool, "tiny", max_seq_length=2048, n_parallel=4)
    assert engine.facts.context_length == 2048
    command = psutil.Process(engine.pid).cmdline()
    assert command[command.index("--parallel") + 1] == "4"


async def test_many_callers_share_one_start(pool):
    answers = await asyncio.gather(*(load(pool, "tiny") for _ in range(10)))
    assert len({engine.pid for engine, _ in answers}) == 1
    assert (await load(pool, "tiny"))[1] is True


async def test_a_changed_context_is_another_engine(pool):
    first, _ = await load(pool, "tiny", max_seq_length=1024)
    pid = first.pid
    second, was_loaded = await load(pool, "tiny", max_seq_length=2048)
    assert not was_loaded
    assert second.facts.context_length == 2048
    assert not is_alive(pid)


async def test_a_start_survives_the_caller_that_asked_for_it(pool):
    impatient = asyncio.create_task(load(pool, BUILTIN))
    await until(lambda: pool.engines)
    impatient.cancel()
    engine, _ = await load(pool, BUILTIN)
    assert isinstance(engine.state, Ready)
    assert len(pool.engines) == 1


async def test_ten_loads_of_two_models_at_once_end_with_one_engine(pool):
    outcomes = await asyncio.gather(
        *(load(pool, ("tiny", BUILTIN)[number % 2]) for number in range(10)),
        return_exceptions=True,
    )
    assert not [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert len(pool.engines) == 1
    assert is_alive(pool.engines[0].pid)
    children = psutil.Process().children(recursive=True)
    assert [child.pid for child in children if child.is_running()] == [pool.engines[0].pid]


async def test_a_model_that_is_kept_stays_beside_the_new_one(pool):
    first, _ = await load(pool, "tiny")
    await load(pool, BUILTIN, keep_others=True)
    assert isinstance(first.state, Ready)
    assert {engine.spec.model for engine in pool.engines} == {"tiny", BUILTIN}


async def test_a_model_that_fails_to_load_leaves_the_one_before_it(pool):
    engine, _ = await load(pool, "tiny")
    with pytest.raises(EngineStartFailed):
        await load(pool, BUILTIN, extra_args=["--rope-scaling", "nonsense"])
    assert isinstance(engine.state, Ready)
    assert pool.active is engine


async def test_an_answering_engine_makes_no_room_unless_forced(pool):
    async with pool.lease("tiny") as (engine, _):
        with pytest.raises(EngineBusy, match="tiny"):
            await load(pool, BUILTIN)
        assert isinstance(engine.state, Ready)
        await load(pool, BUILTIN, force=True)
        assert engine.pid is None


async def test_an_unload_cuts_a_start_short(pool):
    loading = asyncio.create_task(load(pool, BUILTIN))
    await until(lambda: any(isinstance(e.state, Starting) and e.pid for e in pool.engines))
    pid = pool.engines[0].pid
    assert await pool.unload(BUILTIN) == BUILTIN
    with pytest.raises(LoadCancelled):
        await loading
    assert not is_alive(pid)
    assert pool.engines == []
    engine, _ = await load(pool, BUILTIN)
    assert isinstance(engine.state, Ready)


async def test_an_unload_cancels_a_load_that_waits_for_its_turn(pool):
    first = asyncio.create_task(load(pool, BUILTIN))
    await until(lambda: pool.engines)
    second = asyncio.create_task(load(pool, "tiny"))
    await until(lambda: "tiny" in pool.queued)
    assert await pool.unload("tiny") == "tiny"
    with pytest.raises(LoadCancelled):
        await second
    engine, _ = await first
    assert isinstance(engine.state, Ready)


async def test_a_request_during_a_stop_waits_and_gets_a_fresh_process(pool):
    engine, _ = await load(pool, "tiny")
    first = engine.pid
    stopping = asyncio.create_task(pool.unload("tiny"))
    await until(lambda: isinstance(engine.state, Stopping))
    async with pool.lease("tiny") as (fresh, client):
        assert fresh.pid != first
        assert (await client.get("/health")).status == 200
    await stopping


async def killed_and_started_again(engine):
    os.kill(engine.pid, signal.SIGKILL)
    await until(lambda: engine.restarts == 1 and isinstance(engine.state, Ready))


async def test_a_killed_engine_is_started_again_by_itself(pool):
    engine, _ = await load(pool, "tiny")
    await killed_and_started_again(engine)
    assert "SIGKILL" in engine.last_error.evidence
    async with pool.lease("tiny") as (again, client):
        assert again is engine
        assert (await client.get("/health")).status == 200


async def test_an_engine_that_keeps_crashing_is_left_alone_for_a_while(pool):
    engine, _ = await load(pool, "tiny")
    await killed_and_started_again(engine)
    os.kill(engine.pid, signal.SIGKILL)
    await until(lambda: engine.is_settled)
    assert isinstance(engine.state, Failed)
    with pytest.raises(EngineUnavailable) as refusal:
        async with pool.lease("tiny"):
            pass
    assert refusal.value.retry_after_seconds >= 1
    engine, _ = await load(pool, "tiny")
    assert isinstance(engine.state, Ready)


async def test_a_closed_pool_leaves_no_process_and_takes_no_request(settings, tiny_model):
    place(tiny_model, settings.models_dir / "tiny.gguf")
    async with pool_of(settings) as pool:
        engine, _ = await load(pool, "tiny")
        pid = engine.pid
    assert not is_alive(pid)
    assert isinstance(engine.state, Stopped)
    assert not (settings.home / "run").exists()
    with pytest.raises(ShuttingDown):
        async with pool.lease("tiny"):
            pass


async def test_a_request_without_a_model_goes_to_the_one_loaded_last(pool):
    with pytest.raises(NoModelLoaded):
        async with pool.lease(None):
            pass
    await load(pool, "tiny")
    async with pool.lease(None) as (engine, _):
        assert engine.spec.model == "tiny"


async def test_a_context_that_cannot_fit_is_refused_before_anything_is_stopped(pool):
    engine, _ = await load(pool, "tiny")
    with pytest.raises(ModelDoesNotFit, match="GiB"):
        await load(pool, BUILTIN, max_seq_length=1_048_576, n_parallel=256)
    assert isinstance(engine.state, Ready)


async def test_a_socket_path_that_is_too_long_for_the_system_moves_elsewhere(
    settings, tiny_model, tmp_path
):
    deep = tmp_path / ("d" * 100) / "home"
    settings = settings.model_copy(update={"home": deep})
    place(tiny_model, deep / "models" / "tiny.gguf")
    async with pool_of(settings) as pool:
        engine, _ = await load(pool, "tiny")
        assert isinstance(engine.state, Ready)


# With a stand-in that fails on purpose -------------------------------------------------------


async def test_an_engine_that_ends_at_once_is_reported_in_its_own_words(settings, tmp_path):
    settings = with_engine(settings, tmp_path, says=["error: something odd"], exits=3)
    async with pool_of(settings) as pool:
        with pytest.raises(EngineStartFailed) as failure:
            await load(pool, BUILTIN)
        assert "something odd" in failure.value.evidence
        assert "exit status 3" in failure.value.evidence
        assert isinstance(pool.engines[0].state, Failed)


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        ({"dies_by": int(signal.SIGILL)}, EngineIllegalInstruction),
        ({"says": ["cudaMalloc failed: out of memory"], "exits": 1}, EngineOutOfMemory),
        ({"alias": "somebody-else"}, EngineSocketFailed),
    ],
)
async def test_each_way_to_fail_has_its_own_error(settings, tmp_path, behaviour, error):
    async with pool_of(with_engine(settings, tmp_path, **behaviour)) as pool:
        with pytest.raises(error):
            await load(pool, BUILTIN)


async def test_an_engine_that_moves_may_take_longer_than_the_inactivity_limit(settings, tmp_path):
    settings = with_engine(settings, tmp_path, moves_seconds=2)
    settings = settings.model_copy(update={"start_inactivity_seconds": 0.7})
    async with pool_of(settings) as pool:
        engine, _ = await load(pool, BUILTIN)
        assert isinstance(engine.state, Ready)


async def test_an_engine_that_shows_no_sign_of_life_is_given_up(settings, tmp_path):
    settings = with_engine(settings, tmp_path, hangs=True)
    settings = settings.model_copy(update={"start_inactivity_seconds": 0.7})
    async with pool_of(settings) as pool:
        with pytest.raises(EngineNoProgress):
            await load(pool, BUILTIN)
        assert psutil.Process().children() == []


async def test_an_engine_that_ignores_the_first_signal_is_killed(settings, tmp_path):
    settings = with_engine(settings, tmp_path, ignores_sigterm=True)
    settings = settings.model_copy(update={"stop_grace_seconds": 0.3})
    async with pool_of(settings) as pool:
        engine, _ = await load(pool, BUILTIN)
        pid = engine.pid
        async with asyncio.timeout(5):
            await pool.unload(BUILTIN)
        assert not is_alive(pid)


async def test_an_engine_that_ends_without_a_word_is_asked_once_more_why(settings, tmp_path):
    stand_in.write(tmp_path / "real", says=["error: something odd"], exits=1)
    program = tmp_path / "llama-server"
    program.write_text(
        f"#!/bin/sh\n"
        f'case "$*" in *--alias*) ;; *) exec {tmp_path}/real "$@";; esac\n'
        f"mkdir {tmp_path}/heard 2>/dev/null && exit 1\n"
        f'exec {tmp_path}/real "$@"\n'
    )
    program.chmod(0o755)
    settings = settings.model_copy(update={"llama_server_path": program})
    async with pool_of(settings) as pool:
        with pytest.raises(EngineStartFailed) as failure:
            await load(pool, BUILTIN)
    assert "something odd" in failure.value.evidence


async def test_what_an_engine_forked_ends_with_it(settings, tmp_path):
    async with pool_of(with_engine(settings, tmp_path, forks=True)) as pool:
        engine, _ = await load(pool, BUILTIN)
        [child] = psutil.Process(engine.pid).children()
        await pool.unload(BUILTIN)
        await until(lambda: not is_alive(child.pid))


async def test_a_smaller_context_than_asked_is_told(settings, tmp_path):
    async with pool_of(with_engine(settings, tmp_path, context=2048)) as pool:
        engine, _ = await load(pool, BUILTIN, max_seq_length=4096)
        assert "2048 tokens instead of 4096" in engine.warnings[0]


async def test_an_engines_program_that_is_not_one_is_an_error_of_its_own(settings, tmp_path):
    program = tmp_path / "llama-server"
    program.write_text("not a program")
    program.chmod(0o755)
    settings = settings.model_copy(update={"llama_server_path": program})
    async with pool_of(settings) as pool:
        with pytest.raises(EngineMissing, match="can't be run"):
            await load(pool, BUILTIN)


async def test_two_requests_for_two_models_at_once_both_get_a_definite_answer(pool):
    async def ask(model):
        async with pool.lease(model) as (engine, client):
            assert (await client.get("/health")).status == 200
            return engine.spec.model

    async with asyncio.timeout(60):
        answers = await asyncio.gather(ask("tiny"), ask(BUILTIN), return_exceptions=True)
    assert [a for a in answers if not isinstance(a, EngineBusy)]
    assert all(isinstance(a, EngineBusy) or a in ("tiny", BUILTIN) for a in answers)
    assert sum(engine.starts for engine in pool.engines) <= 2


async def test_a_stop_in_the_same_moment_as_a_restart_leaves_nobody_waiting(settings, tmp_path):
    async with pool_of(with_engine(settings, tmp_path, moves_seconds=1)) as pool:
        engine, _ = await load(pool, BUILTIN)
        os.kill(engine.pid, signal.SIGKILL)
        await until(lambda: engine.starts == 2)
        restart = asyncio.create_task(engine.ensure_ready())
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            await engine.stop()
            with pytest.raises(EngineIsGone):
                await restart


async def test_a_stop_during_the_clean_up_of_a_crash_lets_it_finish(settings, tmp_path):
    async with pool_of(with_engine(settings, tmp_path, forks=True)) as pool:
        engine, _ = await load(pool, BUILTIN)
        pid = engine.pid
        [child] = psutil.Process(pid).children()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not is_alive(pid))
        await pool.unload(BUILTIN)
        assert engine.pid is None
        assert engine.is_settled
        await until(lambda: not is_alive(child.pid))


async def test_a_request_right_after_a_crash_gets_a_fresh_process(pool):
    engine, _ = await load(pool, "tiny")
    pid, process = engine.pid, engine._process
    os.kill(pid, signal.SIGKILL)
    while process.returncode is None:
        await asyncio.sleep(0)
    async with pool.lease("tiny") as (fresh, client):
        assert (await client.get("/health")).status == 200
        assert fresh.pid != pid


async def test_an_answer_cut_by_an_unload_says_so_even_after_an_earlier_crash(pool):
    engine, _ = await load(pool, "tiny")
    await killed_and_started_again(engine)
    async with pool.lease("tiny") as (_, client):
        await pool.unload("tiny")
        assert "unloaded" in (await engine.cause_of_loss(client)).message


async def test_a_second_caller_with_force_is_not_answered_as_the_first_one_without(pool):
    async with pool.lease("tiny"):
        first = asyncio.create_task(load(pool, BUILTIN))
        await until(lambda: pool.queued or first.done())
        engine, _ = await load(pool, BUILTIN, force=True)
        assert isinstance(engine.state, Ready)
        with pytest.raises(EngineBusy):
            await first


async def test_an_engine_that_does_not_say_its_name_is_trusted_on_its_private_socket(
    settings, tmp_path
):
    async with pool_of(with_engine(settings, tmp_path, alias=None)) as pool:
        engine, _ = await load(pool, BUILTIN)
        assert isinstance(engine.state, Ready)


async def test_a_projector_that_the_engine_cannot_read_costs_the_pictures_and_not_the_model(
    pool, settings, tiny_model
):
    folder = settings.models_dir / "seeing"
    place(tiny_model, folder / "seeing.gguf")
    write_projector(folder / "mmproj-seeing.gguf")
    engine, _ = await load(pool, str(folder / "seeing.gguf"))
    assert engine.spec.projector_path is not None
    assert "--mmproj" not in psutil.Process(engine.pid).cmdline()
    assert not engine.facts.is_vision
    assert any("projector" in warning for warning in engine.warnings)
