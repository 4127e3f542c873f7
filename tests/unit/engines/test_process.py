import asyncio
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from eloquio.engines import launch
from eloquio.engines.log import LogRing
from eloquio.engines.process import EngineProcess
from eloquio.engines.run_folder import RunFolder

LAUNCH = Path(launch.__file__)


def watched(command, **pipes):
    """The watcher of systems without a kernel's help, as it runs there."""
    program = f"import sys; sys.path.insert(0, {str(LAUNCH.parent)!r}); import launch; "
    program += f"sys.exit(launch.watch({command!r}))"
    return subprocess.Popen(
        [sys.executable, "-IS", "-c", program], stdin=subprocess.PIPE, text=True, **pipes
    )


def test_a_watched_engine_ends_when_its_parents_pipe_does():
    with watched(["/bin/sh", "-c", "echo here; exec sleep 60"], stdout=subprocess.PIPE) as watcher:
        assert watcher.stdout.readline() == "here\n"
        [engine] = psutil.Process(watcher.pid).children()
        watcher.stdin.close()
        assert watcher.wait(timeout=10) == -9
        assert not engine.is_running()


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("kill -SEGV $$", -11)])
def test_a_watcher_ends_as_its_engine_did(script, status):
    with watched(["/bin/sh", "-c", script]) as watcher:
        assert watcher.wait(timeout=10) == status


def test_an_engine_is_not_started_for_a_parent_that_is_gone():
    command = [sys.executable, "-IS", str(LAUNCH), "1", "/bin/echo", "started"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    assert done.stdout == ""
    assert done.returncode == 1


@pytest.mark.anyio
async def test_a_process_tells_its_words_and_its_signs_of_life():
    log = LogRing()
    command = ["/bin/sh", "-c", "echo one; echo two >&2; read line"]
    process = await EngineProcess.start(command, os.environ, log)
    async with asyncio.timeout(10):
        while log.line_count < 2:
            await asyncio.sleep(0.01)
    signs = process.signs_of_life()
    assert process.resident_bytes() > 0
    assert await process.stop(grace_seconds=2) == -15
    assert sorted(log.lines) == ["one", "two"]
    assert len(signs) == 4
    assert process.resident_bytes() is None


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
