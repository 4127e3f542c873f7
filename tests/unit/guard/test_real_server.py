"""What no client library sends, over a real socket to the real web server."""

import socket
import threading

import pytest
import uvicorn


@pytest.fixture
def port(guarded):
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(guarded, log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def say(port):
    """Send these lines, and return the reply's first line."""

    def say(*lines: str) -> str:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1"))
            return connection.makefile("rb").readline().decode().strip()

    return say


def test_a_name_of_ours_is_answered(say):
    assert say("GET / HTTP/1.1", "Host: localhost") == "HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    "lines",
    [
        ["GET / HTTP/1.1"],
        ["GET / HTTP/1.0"],
        ["GET / HTTP/1.1", "Host:"],
        ["GET / HTTP/1.1", "Host: evil.example"],
        ["GET / HTTP/1.1", "Host: localhost", "Host: evil.example"],
        ["GET / HTTP/1.1", "Host: evil.example", "Host: localhost"],
        ["GET / HTTP/1.1", "Host: localhost", "Host: localhost"],
        ["GET http://localhost/ HTTP/1.1", "Host: evil.example"],
        ["GET / HTTP/1.1", "Host: localhost.evil.example", "X-Forwarded-Host: localhost"],
        ["GET / HTTP/1.1", "Host: user@localhost"],
        ["GET / HTTP/1.1", "Host: [::1]x"],
        ["GET / HTTP/1.1", "Host: localhost\x0bevil"],
    ],
)
def test_any_other_name_is_refused(say, inner, lines):
    assert say(*lines).split()[1] in ("400", "403")
    assert inner.reached == []


UPGRADE = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")


@pytest.mark.parametrize(
    "header",
    ["Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"],
)
def test_another_sites_socket_is_refused(say, inner, header):
    first = say("GET /events HTTP/1.1", "Host: localhost", *UPGRADE, header)
    assert first == "HTTP/1.1 403 Forbidden"
    assert inner.reached == []


def test_a_refused_upload_is_answered_before_it_is_complete(say):
    lines = ("POST /v1/load HTTP/1.1", "Host: evil.example", "Content-Length: 1000000")
    assert say(*lines) == "HTTP/1.1 403 Forbidden"
