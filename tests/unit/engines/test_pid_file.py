import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace

import psutil
import pytest
import structlog

from eloquio.engines.family import MARK_VARIABLE, is_alive, new_mark
from eloquio.engines.pid_file import Record, read_record, reap, write_record

MARK = new_mark()
RECORD = Record(pid=4711, started=1796000000.25, executable="/usr/bin/llama-server", mark=MARK)

BAD_CONTENTS = {
    "zero": b"0",
    "one": b"1",
    "minus one": b"-1",
    "letters": b"abc",
    "nothing": b"",
    "no text": bytes(range(256)),
    "no end": b"[" * 10_000,
    "much": b" " * 1_000_000 + json.dumps(asdict(RECORD)).encode(),
    "a list": b"[4711]",
    "a part": b'{"pid": 4711}',
} | {
    f"the number {pid!r}": json.dumps(asdict(RECORD) | {"pid": pid}).encode()
    for pid in (0, 1, -1, -4711, 2**31, 10**30, True, 4711.0, "4711", None)
}


@pytest.fixture
def signals(monkeypatch):
    """Every signal that this process sends, each still sent."""
    sent = []
    for name in ("kill", "killpg"):
        send = getattr(os, name)

        def record(pid, number, send=send):
            sent.append((pid, number))
            send(pid, number)

        monkeypatch.setattr(os, name, record)
    return sent


@contextmanager
def running(*command, own_group=True, **variables):
    environment = os.environ | variables
    with subprocess.Popen(command, start_new_session=own_group, env=environment) as process:
        try:
            yield shown(psutil.Process(process.pid))
        finally:
            process.kill()


def shown(process):
    """The process, once it can be seen what it runs, which is a little after its start."""
    deadline = time.monotonic() + 30
    with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        while not (process.cmdline() and process.environ()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    return process


def record_of(process, **changes):
    record = Record(process.pid, process.create_time(), "/bin/sleep", new_mark())
    return replace(record, **changes)


def reaped(path, record):
    write_record(path, record)
    with structlog.testing.capture_logs() as logs:
        assert reap([path]) == set()
    return [entry["pid"] for entry in logs if entry["event"] == "orphan_reaped"]


def test_a_record_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "0.pid"
    write_record(path, replace(RECORD, pid=999999))
    write_record(path, RECORD)
    assert read_record(path) == RECORD


@pytest.mark.parametrize("content", BAD_CONTENTS.values(), ids=BAD_CONTENTS)
def test_what_is_no_record_signals_nobody(tmp_path, signals, content):
    path = tmp_path / "0.pid"
    path.write_bytes(content)
    assert read_record(path) is None
    assert reap([path]) == set()
    assert signals == []


def test_neither_a_link_nor_a_pipe_nor_a_folder_is_a_record(tmp_path, signals):
    with running("/bin/sleep", "600") as process:
        write_record(tmp_path / "true", record_of(process))
        (tmp_path / "0.pid").symlink_to(tmp_path / "true")
        os.mkfifo(tmp_path / "1.pid")
        (tmp_path / "2.pid").mkdir()
        paths = [tmp_path / name for name in ("0.pid", "1.pid", "2.pid", "3.pid")]
        assert [read_record(path) for path in paths] == [None] * 4
        assert reap(paths) == set()
        assert signals == []
        assert is_alive(process)


def test_a_recorded_process_is_ended_and_named(tmp_path):
    with running("/bin/sleep", "600") as process:
        assert reaped(tmp_path / "0.pid", record_of(process)) == [process.pid]
        assert not is_alive(process)


def test_a_script_is_known_by_its_command_line(tmp_path):
    script = tmp_path / "llama-server"
    script.write_text(f"#!{sys.executable}\nimport time; time.sleep(600)\n")
    script.chmod(0o755)
    with running(str(script)) as process:
        record = record_of(process, executable=str(script))
        assert reaped(tmp_path / "0.pid", record) == [process.pid]


def test_a_program_is_known_by_where_its_link_leads(tmp_path):
    link = tmp_path / "engine"
    link.symlink_to("/bin/sleep")
    with running("/bin/sleep", "600") as process:
        record = record_of(process, executable=str(link))
        assert reaped(tmp_path / "0.pid", record) == [process.pid]


def test_a_process_in_our_own_group_is_ended_alone(tmp_path, signals):
    with running("/bin/sleep", "600", own_group=False) as process:
        assert reaped(tmp_path / "0.pid", record_of(process)) == [process.pid]
        assert {pid for pid, _ in signals} == {process.pid}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"started": 1796000000.0}, id="its number was given away"),
        pytest.param({"started": float("nan")}, id="it has no start"),
        pytest.param({"executable": "/usr/bin/llama-server"}, id="it is another program"),
        pytest.param({"executable": "/bin/sleep\0"}, id="its name can't be one"),
    ],
)
def test_a_process_that_is_not_the_recorded_one_survives(tmp_path, signals, changes):
    with running("/bin/sleep", "600") as process:
        assert reaped(tmp_path / "0.pid", record_of(process, **changes)) == []
        assert signals == []
        assert is_alive(process)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start another user's process")
def test_another_users_process_survives(tmp_path, signals):
    with subprocess.Popen(["/bin/sleep", "600"], user=65534) as other:
        process = psutil.Process(other.pid)
        assert reaped(tmp_path / "0.pid", record_of(process)) == []
        assert signals == []
        assert is_alive(process)
        other.kill()


def test_a_record_of_the_reader_itself_is_not_followed(tmp_path, signals):
    record = record_of(psutil.Process(), executable=sys.executable)
    assert reaped(tmp_path / "0.pid", record) == []
    assert signals == []


def test_what_an_ended_engine_had_started_is_known_by_its_mark(tmp_path):
    mark = new_mark()
    with (
        running("/bin/sleep", "600", **{MARK_VARIABLE: mark}) as helper,
        running("/bin/sleep", "600", **{MARK_VARIABLE: new_mark()}) as anothers,
    ):
        with running("/bin/sleep", "0") as ended:
            record = record_of(ended, mark=mark)
        assert reaped(tmp_path / "0.pid", record) == [helper.pid]
        assert is_alive(anothers)
