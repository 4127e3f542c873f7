import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import structlog

import eloquio
from eloquio.engines.family import is_alive, new_mark
from eloquio.engines.pid_file import Record, write_record
from eloquio.engines.run_folder import RunFolder

BACKEND = """
import asyncio, os, sys
from pathlib import Path
from eloquio.engines.log import LogRing
from eloquio.engines.process import EngineProcess
from eloquio.engines.run_folder import RunFolder

async def main():
    folder = RunFolder.create(Path(sys.argv[1]), None)
    log = LogRing()
    engine = await EngineProcess.start(sys.argv[2:], os.environ, log, folder.path / "0.pid")
    while not log.line_count:
        await asyncio.sleep(0.01)
    print(engine.pid, log.lines[0], flush=True)
    await engine.wait()

asyncio.run(main())
"""
# It takes back what binds it to its parent's life.
UNBOUND = """
import ctypes, time
ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
print("unbound", flush=True)
time.sleep(600)
"""
HELPED = "setsid sleep 600 & echo $!; wait"


@contextmanager
def backend(home, *engine):
    """A backend with one engine; yields it, its engine and the engine's first words."""
    environment = os.environ | {"PYTHONPATH": str(Path(eloquio.__file__).parents[1])}
    command = [sys.executable, "-c", BACKEND, str(home), *engine]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            pid, words = process.stdout.readline().split()
            yield process, psutil.Process(int(pid)), words
        finally:
            process.kill()


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10)


@contextmanager
def next_start(home):
    """The folder of the backend that starts next, and the numbers of whom it reaped."""
    with structlog.testing.capture_logs() as logs:
        folder = RunFolder.create(home, None)
    try:
        yield folder, [entry["pid"] for entry in logs if entry["event"] == "orphan_reaped"]
    finally:
        folder.remove()


def test_a_run_folder_removes_what_the_dead_left_and_nothing_of_the_living(tmp_path):
    living = RunFolder.create(tmp_path, None)
    dead = tmp_path / "run" / "dead"
    dead.mkdir()
    (dead / "lock").touch()
    (dead / "0.sock").touch()
    second = RunFolder.create(tmp_path, None)
    assert not dead.exists()
    assert living.path.is_dir()
    assert living.path.stat().st_mode & 0o777 == 0o700
    second.remove()
    assert living.path.is_dir()
    living.remove()
    assert not (tmp_path / "run").exists()


def test_a_home_with_a_long_name_has_its_sockets_in_the_runtime_folder(tmp_path):
    runtime = tmp_path / "r"
    runtime.mkdir()
    folder = RunFolder.create(tmp_path / ("d" * 120), runtime)
    assert folder.path.is_relative_to(runtime / "eloquio")
    folder.remove()


@pytest.mark.skipif(sys.platform != "linux", reason="the call that takes the binding is Linux's")
def test_an_engine_that_outlived_a_killed_backend_ends_with_the_next_start(tmp_path):
    with backend(tmp_path, sys.executable, "-c", UNBOUND) as (process, engine, words):
        assert words == "unbound"
        [pid_file] = tmp_path.glob("run/*/0.pid")
        kill(process)
        assert is_alive(engine)
        with next_start(tmp_path) as (folder, reaped):
            assert reaped == [engine.pid]
            assert not is_alive(engine)
            assert not pid_file.exists()
            assert list((tmp_path / "run").iterdir()) == [folder.path]


def test_what_the_engine_of_a_killed_backend_had_started_ends_with_the_next_start(tmp_path):
    with backend(tmp_path, "/bin/sh", "-c", HELPED) as (process, engine, words):
        helper = psutil.Process(int(words))
        kill(process)
        assert is_alive(helper)
        with next_start(tmp_path) as (_, reaped):
            assert helper.pid in reaped
            assert not is_alive(helper)
            assert not is_alive(engine)


def test_another_living_backend_and_a_foreign_server_survive_a_start(tmp_path):
    foreign_command = ["/bin/sh", "-c", "sleep 600", "llama-server", "--alias", "eloquio"]
    with (
        backend(tmp_path, "/bin/sh", "-c", "echo here; read line") as (process, engine, _),
        subprocess.Popen(foreign_command, start_new_session=True) as foreign,
    ):
        with next_start(tmp_path) as (_, reaped):
            assert reaped == []
            assert process.poll() is None
            assert is_alive(engine)
            assert foreign.poll() is None
        os.killpg(foreign.pid, signal.SIGKILL)


@pytest.mark.parametrize("content", [b"0", b"1", b"-1", b"abc", b"", b"\xff" * 100_000])
def test_a_bad_pid_file_does_not_hinder_a_start(tmp_path, content):
    dead = tmp_path / "run" / "dead"
    dead.mkdir(parents=True)
    (dead / "lock").touch()
    (dead / "0.pid").write_bytes(content)
    with next_start(tmp_path) as (_, reaped):
        assert reaped == []
        assert not dead.exists()


def test_a_folder_that_is_only_linked_to_is_left_alone(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "link").symlink_to(elsewhere)
    with (
        subprocess.Popen(["/bin/sleep", "600"]) as process,
        next_start(tmp_path) as (_, reaped),
    ):
        started = psutil.Process(process.pid).create_time()
        write_record(elsewhere / "0.pid", Record(process.pid, started, "/bin/sleep", new_mark()))
        with next_start(tmp_path) as (_, reaped):
            assert reaped == []
            assert process.poll() is None
            assert (elsewhere / "0.pid").exists()
        process.kill()


def test_backends_that_start_and_end_at_once_each_get_a_folder(tmp_path):
    def start_and_end(_):
        folder = RunFolder.create(tmp_path, None)
        was_there = (folder.path / "lock").exists()
        folder.remove()
        return was_there

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(start_and_end, range(200)))
