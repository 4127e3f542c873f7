"""The real server, as its own process, from its first line to its last."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time

import httpx2 as httpx
import pytest

from eloquio.auth.keys import known_key
from eloquio.doctor.faults import stand_in
from eloquio.settings import Settings
from fixtures.running import BUILTIN, place, serving


class Served:
    """A server process: `line` is the first that it printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.line = process.stdout.readline().strip()
        self.address = self.line.removeprefix("Eloquio is at ")

    def end(self, signal_number: int = signal.SIGTERM) -> tuple[int, str]:
        """The exit status, and what else was printed."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        rest = self.process.stdout.read()
        return self.process.wait(timeout=15), rest


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def serve(home, tmp_path):
    """Start a server with these flags; all are ended after the test."""
    started: list[Served] = []
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path / "hub")}

    def serve(*flags: str) -> Served:
        command = [sys.executable, "-m", "eloquio", "serve", "--no-load-on-start"]
        started.append(
            Served(
                subprocess.Popen(
                    [*command, "--home", str(home), *flags],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    env=environment,
                )
            )
        )
        return started[-1]

    yield serve
    for served in started:
        served.end()
        served.process.stdout.close()


def test_it_says_where_it_is_when_it_can_be_asked(serve):
    served = serve("--port", "0")
    assert httpx.get(f"{served.address}/health").json()["service"] == "eloquio"


def test_ctrl_c_ends_it_at_once_even_while_somebody_listens(serve):
    served = serve("--port", "0")
    with httpx.Client(base_url=served.address, timeout=10) as client:
        headers = {"accept": "text/event-stream"}
        with client.stream("GET", "/v1/load/progress", headers=headers) as following:
            next(following.iter_lines())
            started = time.monotonic()
            assert served.end(signal.SIGINT) == (130, "")
    assert time.monotonic() - started < 5


def test_not_even_a_stubborn_engine_in_the_middle_of_an_answer_holds_it_up(real_model, tmp_path):
    home = tmp_path / "home"
    place(real_model, home / "models" / f"{BUILTIN}.gguf")
    program = stand_in.write(
        tmp_path / "llama-server", streams=["data: {}\n\n"], then="hang", ignores_sigterm=True
    )
    flags = ("--no-load-on-start", "--llama-server", str(program))
    question = {"model": BUILTIN, "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    with (
        serving(home, *flags) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
        client.stream("POST", "/v1/chat/completions", json=question) as answer,
    ):
        next(answer.iter_lines())
        started = time.monotonic()
        server.end(signal.SIGINT)
        assert time.monotonic() - started < 5


def test_a_terminated_server_says_so_to_whoever_started_it(serve):
    assert serve("--port", "0").end(signal.SIGTERM) == (-signal.SIGTERM, "")


def test_its_last_words_are_in_the_log(serve, home):
    served = serve("--port", "0")
    httpx.get(f"{served.address}/v1/nowhere")
    served.end(signal.SIGTERM)
    assert '"/v1/nowhere"' in (home / "logs" / "eloquio.log").read_text()


def test_a_second_server_is_told_of_the_first(serve, eloquio):
    address = serve("--port", "0").address
    result = eloquio("serve", "--no-browser", "--port", address.rpartition(":")[2])
    assert result.exit_code == 1
    assert result.stderr == (
        f"Eloquio is running already, at {address}. Open that, or end it first.\n"
    )


def test_a_port_that_another_program_holds_is_told_plainly(eloquio):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        result = eloquio("serve", "--no-browser", "--port", str(port))
    assert result.exit_code == 1
    assert f"Port {port} is taken by another program." in result.stderr
    assert f"--port {port + 1}" in result.stderr


def test_an_address_that_is_not_ours_is_told_plainly(eloquio):
    result = eloquio("serve", "--no-browser", "--port", "0", "--host", "192.0.2.1")
    assert result.exit_code == 1
    assert "192.0.2.1 is no address of this machine" in result.stderr


def test_beyond_this_machine_it_asks_for_the_key_that_it_shows_once(serve, home):
    served = serve("--port", "0", "--host", "0.0.0.0")
    for path in ("/health", "/", "/v1/status", "/openapi.json"):
        assert httpx.get(f"{served.address}{path}").status_code == 401
    key = known_key(Settings(home=home))
    headers = {"authorization": f"Bearer {key}"}
    assert httpx.get(f"{served.address}/health", headers=headers).status_code == 200
    assert stat.S_IMODE((home / "api-key").stat().st_mode) == 0o600
    assert served.end()[1].strip().endswith(f": {key}")
    again = serve("--port", "0", "--host", "0.0.0.0")
    assert key not in again.end()[1]
    assert key not in (home / "logs" / "eloquio.log").read_text()


def test_on_this_machine_alone_no_key_is_made(serve, home):
    serve("--port", "0").end()
    assert not (home / "api-key").exists()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_it_does_not_name_the_program_that_serves(serve):
    reply = httpx.get(f"{serve('--port', '0').address}/health")
    assert "server" not in reply.headers
    assert reply.headers["content-security-policy"].startswith("default-src 'self'")


def test_the_api_is_described_alike_each_time_for_the_types_of_the_page(eloquio, home, monkeypatch):
    monkeypatch.setenv("ELOQUIO_HOME", str(home))
    monkeypatch.setenv("ELOQUIO_HOST", "0.0.0.0")
    first, second = eloquio("openapi"), eloquio("openapi")
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert first.stdout == second.stdout
    assert first.stdout.startswith('{\n "components"')
    assert "/v1/health" in json.loads(first.stdout)["paths"]
    assert not home.exists()
