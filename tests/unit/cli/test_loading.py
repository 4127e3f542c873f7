"""A load from the command line, with a real server and an engine that never gets ready."""

import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx2 as httpx
import pytest

from eloquio.doctor.faults import stand_in
from fixtures.running import BUILTIN, serving


@pytest.fixture
def server(home, tmp_path):
    program = stand_in.write(tmp_path / "llama-server", hangs=True)
    flags = ("--no-load-on-start", "--llama-server", str(program))
    with serving(home, *flags) as server:
        yield server


def engines(server) -> list[dict]:
    return httpx.get(f"{server.url}/v1/status").json()["engines"]


@contextmanager
def loading(server, monkeypatch):
    """`eloquio load`, at the point at which the engine has been started."""
    monkeypatch.setenv("ELOQUIO_PORT", server.url.rpartition(":")[2])
    command = [sys.executable, "-m", "eloquio", "load", BUILTIN]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until = time.monotonic() + 60
        while not any(engine["status"]["state"] == "starting" for engine in engines(server)):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < until
        yield process
        process.kill()


def test_ctrl_c_ends_the_load_in_the_server_too(server, monkeypatch):
    with loading(server, monkeypatch) as process:
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)
        assert (process.returncode, said) == (130, ("", ""))
    assert [engine["status"]["state"] for engine in engines(server)] in ([], ["stopped"])


def test_a_server_that_dies_during_a_load_is_told_plainly(server, monkeypatch):
    with loading(server, monkeypatch) as process:
        server.process.kill()
        stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout) == (1, "")
    assert stderr.startswith(f"The connection to {server.url} broke off.")
    assert "Traceback" not in stderr
