import contextlib
import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from eloquio.engines.address import Address, is_listened_by, new_address

pytestmark = pytest.mark.anyio

LISTEN = """
import socket, sys, time
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
listener.bind((sys.argv[1], int(sys.argv[2])))
listener.listen()
print(listener.getsockname()[1], flush=True)
time.sleep(600)
"""
LISTEN_IN_A_CHILD = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {LISTEN!r}, *sys.argv[1:]])
"""


@contextlib.contextmanager
def listening(program=LISTEN, host="127.0.0.1", port=0):
    """A process that listens, and the port at which it does."""
    command = [sys.executable, "-c", program, host, str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process, int(process.stdout.readline())
        finally:
            os.killpg(process.pid, 9)


@pytest.fixture
def engine():
    """A process that lives and listens nowhere."""
    with subprocess.Popen(["/bin/sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture
def foreign_server():
    """Answers 200 to `/health`, as somebody else's server may."""

    class Healthy(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"status":"ok"}')

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Healthy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Address(port=server.server_address[1])
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("program", [LISTEN, LISTEN_IN_A_CHILD])
async def test_a_port_is_the_engines_when_it_or_its_child_listens_there(program, host):
    with listening(program, host) as (process, port):
        assert await is_listened_by(Address(port=port), process.pid)


async def test_a_foreign_server_that_says_it_is_healthy_is_not_the_engine(foreign_server, engine):
    async with foreign_server.client() as client, client.get("/health") as reply:
        assert reply.status == 200
    assert not await is_listened_by(foreign_server, engine.pid)
    assert await is_listened_by(foreign_server, os.getpid())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who shares a port")
async def test_a_port_that_a_stranger_shares_is_not_the_engines_alone():
    with listening() as (process, port):
        with listening(port=port):
            assert not await is_listened_by(Address(port=port), process.pid)
        assert await is_listened_by(Address(port=port), process.pid)


async def test_nobody_listens_where_the_process_is_gone_or_silent(engine):
    with listening() as (process, port):
        pass
    assert not await is_listened_by(Address(port=port), process.pid)
    assert not await is_listened_by(Address(port=port), engine.pid)


async def test_a_socket_in_the_private_folder_is_the_engines_once_it_is_there(tmp_path, engine):
    address = new_address(tmp_path, "0")
    assert not await is_listened_by(address, engine.pid)
    address.socket_path.touch()
    assert not await is_listened_by(address, engine.pid)
    address = new_address(tmp_path, "0")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address.socket_path))
        assert await is_listened_by(address, engine.pid)


async def test_a_folder_with_a_long_name_makes_it_a_free_port_and_a_key(tmp_path):
    first = new_address(tmp_path / ("d" * 120), "0")
    second = new_address(tmp_path / ("d" * 120), "1")
    assert first.socket_path is None
    assert len(first.key) >= 32
    assert first.key != second.key
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", first.port))
