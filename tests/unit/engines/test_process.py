import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from eloquio.engines import launch
from eloquio.engines.family import Family, is_alive, new_mark
from eloquio.engines.log import LogRing
from eloquio.engines.pid_file import read_record
from eloquio.engines.process import EngineProcess
from fixtures.pools import until

LAUNCH = Path(launch.__file__)

# Each tells the helper's number, and goes on.
HELPERS = {
    "in its group": "sleep 600 & echo $!; ",
    "in a session of its own": "setsid sleep 600 & echo $!; ",
    "in a session of its own, whose parent has gone": "sh -c 'setsid sleep 600 & echo $!'; ",
    "in its group, without its environment": "env -i /bin/sleep 600 & echo $!; ",
    "in a session of its own, without its environment": "setsid env -i /bin/sleep 600 & echo $!; ",
}


def watched(command, **options):
    """The watcher of systems without a kernel's help, as it runs there."""
    program = f"import sys; sys.path.insert(0, {str(LAUNCH.parent)!r}); import launch; "
    program += f"sys.exit(launch.watch({command!r}))"
    return subprocess.Popen(
        [sys.executable, "-IS", "-c", program], stdin=subprocess.PIPE, text=True, **options
    )


def test_a_watched_engine_ends_when_its_parents_pipe_does():
    with watched(["/bin/sh", "-c", "echo here; exec sleep 60"], stdout=subprocess.PIPE) as watcher:
        assert watcher.stdout.readline() == "here\n"
        [engine] = psutil.Process(watcher.pid).children()
        watcher.stdin.close()
        assert watcher.wait(timeout=10) == -9
        assert not engine.is_running()


def test_a_watcher_takes_what_the_engine_started_with_it():
    script = "sleep 600 & echo $!; wait"
    pipes = {"stdout": subprocess.PIPE, "start_new_session": True}
    with watched(["/bin/sh", "-c", script], **pipes) as watcher:
        helper = psutil.Process(int(watcher.stdout.readline()))
        watcher.stdin.close()
        assert watcher.wait(timeout=10) == -9
        deadline = time.monotonic() + 10
        while is_alive(helper) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not is_alive(helper)


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
    process = await started("echo one; echo two >&2; read line", lines=2)
    signs = process.signs_of_life()
    assert process.resident_bytes() > 0
    assert await process.stop(grace_seconds=2) == -15
    assert sorted(process.log.lines) == ["one", "two"]
    assert signs.lines == 2
    assert signs.resident_bytes > 0
    assert signs.bytes_read > 0
    assert process.resident_bytes() is None


@pytest.mark.anyio
async def test_what_its_children_do_is_a_sign_of_its_life():
    process = await started("(while :; do :; done) & echo $!; wait", lines=1)
    await until(lambda: process.signs_of_life().cpu_seconds >= 0.2, 30)
    assert psutil.Process(process.pid).cpu_times().user < 0.2
    await process.stop(grace_seconds=2)


@pytest.mark.anyio
async def test_a_pid_file_tells_of_a_process_for_as_long_as_it_runs(tmp_path):
    path = tmp_path / "0.pid"
    process = await started("echo here; read line", lines=1, pid_file=path)
    record = read_record(path)
    assert record.pid == process.pid
    assert record.started == psutil.Process(process.pid).create_time()
    assert record.executable == "/bin/sh"
    assert path.stat().st_mode & 0o777 == 0o600
    await process.stop(grace_seconds=2)
    assert not path.exists()


@pytest.mark.anyio
async def test_the_pid_file_of_a_crashed_process_goes_though_nobody_waits_for_it(tmp_path):
    path = tmp_path / "0.pid"
    process = await started("echo here; read line", lines=1, pid_file=path)
    os.kill(process.pid, signal.SIGSEGV)
    await until(lambda: not path.exists(), 30)
    assert await process.wait() == -11


@pytest.mark.anyio
async def test_a_process_that_could_not_be_found_again_is_not_started(tmp_path):
    before = psutil.Process().children()
    with pytest.raises(FileNotFoundError):
        await started("sleep 600", lines=0, pid_file=tmp_path / "missing" / "0.pid")
    assert set(psutil.Process().children()) <= set(before)


@pytest.mark.anyio
@pytest.mark.parametrize("helper", HELPERS)
async def test_a_stop_ends_a_helper(helper):
    process = await started(HELPERS[helper] + "wait", lines=1)
    started_helper = psutil.Process(int(process.log.lines[0]))
    assert is_alive(started_helper)
    await process.stop(grace_seconds=2)
    await until(lambda: not is_alive(started_helper), 30)


# One that has left both the group and the environment is known by its parent only, while that
# lives: a crash takes that knowledge away.
@pytest.mark.anyio
@pytest.mark.parametrize("helper", list(HELPERS)[:-1])
async def test_a_crash_ends_a_helper(helper):
    process = await started(HELPERS[helper] + "read line", lines=1)
    started_helper = psutil.Process(int(process.log.lines[0]))
    assert is_alive(started_helper)
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    await until(lambda: not is_alive(started_helper), 30)


@pytest.mark.anyio
async def test_a_stop_kills_a_process_that_ignores_being_asked():
    process = await started("trap '' TERM; echo here; while :; do sleep 600; done", lines=1)
    assert await process.stop(grace_seconds=0.1) == -9


@pytest.mark.anyio
async def test_a_stop_spares_another_engine_and_a_process_of_the_same_name():
    other = await started("echo here; read line", lines=1)
    process = await started("echo here; read line", lines=1)
    with stranger("/bin/sh", "-c", "echo llama-server eloquio; read line") as foreign:
        await process.stop(grace_seconds=2)
        assert is_alive(psutil.Process(other.pid))
        assert is_alive(foreign)
    await other.stop(grace_seconds=2)


def test_a_number_that_was_given_to_a_stranger_is_not_signalled():
    with stranger("/bin/sleep", "600") as process:
        ended = psutil.Process(process.pid)
        # As psutil knows a process that had the number before.
        ended._ident = (ended.pid, ended._ident[1] - 100)
        family = Family(ended, new_mark())
        family.signal_group(signal.SIGKILL)
        assert family.kill(group_until=process.create_time() - 1) == set()
        assert is_alive(process)


def test_a_root_in_somebody_elses_group_is_killed_alone():
    with subprocess.Popen(["/bin/sleep", "600"]) as root:
        family = Family(psutil.Process(root.pid), new_mark())
        assert family.kill() == {psutil.Process(root.pid)}
        assert root.wait(timeout=10) == -9


async def started(script, *, lines, pid_file=None):
    """A shell that runs `script`, once it has said so many lines."""
    process = await EngineProcess.start(["/bin/sh", "-c", script], os.environ, LogRing(), pid_file)
    await until(lambda: process.log.line_count >= lines, 30)
    return process


@contextmanager
def stranger(*command):
    """A process that leads a group of its own, as another program's does."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        try:
            yield psutil.Process(process.pid)
        finally:
            process.kill()
