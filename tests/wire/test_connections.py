"""Connections as the wire has them: readers that stop reading, and clients of HTTP/1.0."""

import json
import socket
from contextlib import contextmanager

import httpx2 as httpx
import pytest

from fixtures.running import place, serving, until
from fixtures.runs import ended, read, start

QUESTION = [{"role": "user", "content": "Go on."}]
# Far more than what lies between an engine and a reader that doesn't read.
MUCH = {"model": "tiny", "messages": QUESTION, "stream": True, "max_tokens": 8000}
MUCH |= {"logprobs": True, "top_logprobs": 20}


@pytest.fixture(scope="module")
def server(tmp_path_factory, tiny_model):
    home = tmp_path_factory.mktemp("connections") / "home"
    place(tiny_model, home / "models" / "tiny.gguf")
    settings = {"ELOQUIO_LOAD_ON_START": "false", "ELOQUIO_STALLED_READER_SECONDS": "1"}
    with serving(home, **settings) as running:
        loaded = httpx.post(f"{running.url}/load", json={"model_path": "tiny"}, timeout=60)
        assert loaded.status_code == 200
        yield running


@contextmanager
def asked(server, line, body=None):
    """A connection on which this was asked, and nothing is read but by the test."""
    host, port = server.url.removeprefix("http://").split(":")
    raw = b"" if body is None else json.dumps(body).encode()
    head = f"{line}\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60)
        connection.connect((host, int(port)))
        connection.sendall(f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw)
        yield connection


def rest_of(connection):
    """What still comes; a connection that was reset ends, too."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received


def busy(server):
    return sum(e["busy"] for e in httpx.get(f"{server.url}/v1/status").json()["engines"])


def newest_request(server):
    return httpx.get(f"{server.url}/v1/requests?limit=1").json()["data"][0]


def test_a_client_that_stops_reading_frees_the_engine(server):
    with asked(server, "POST /v1/chat/completions HTTP/1.1", MUCH) as connection:
        assert connection.recv(12) == b"HTTP/1.1 200"
        until(lambda: busy(server) == 0, 60)
        until(lambda: newest_request(server)["status"] != "running")
        assert newest_request(server)["status"] == "client_left"
        assert b"[DONE]" not in rest_of(connection)


def test_a_reader_of_a_run_that_stops_reading_is_dropped_and_the_run_goes_on(server):
    log = server.home / "stderr.txt"
    stalled_before = log.read_text().count("reader_stalled")
    run_id = start(server, max_tokens=4000, logprobs=True, top_logprobs=20)
    with asked(server, f"GET /v1/runs/{run_id}/events HTTP/1.1") as connection:
        assert connection.recv(12) == b"HTTP/1.1 200"
        run = ended(server, run_id, 60)
        assert (run["status"], run["usage"]["completion_tokens"]) == ("completed", 4000)
        # Nothing is read before the server gives up: a slow reader would get all of it.
        until(lambda: log.read_text().count("reader_stalled") > stalled_before, 60)
        assert b"[DONE]" not in rest_of(connection)
    assert read(server, run_id).is_done


def split(reply):
    head, _, body = reply.partition(b"\r\n\r\n")
    return head.decode().lower().split("\r\n"), body


def test_a_client_of_http_1_0_gets_a_stream_that_ends_with_the_connection(server):
    body = {"model": "tiny", "messages": QUESTION, "stream": True, "max_tokens": 20}
    body |= {"temperature": 0}
    with asked(server, "POST /v1/chat/completions HTTP/1.0", body) as connection:
        head, events = split(rest_of(connection))
    assert not any(line.startswith(("transfer-encoding", "content-length")) for line in head)
    assert "connection: close" in head
    assert events.startswith(b"data: {")
    assert events.endswith(b"\n\ndata: [DONE]\n\n")
    assert all(event.startswith(b"data: ") for event in events.split(b"\n\n")[:-1])


def test_a_client_of_http_1_0_gets_the_events_of_a_run(server):
    run_id = start(server, max_tokens=20)
    whole = read(server, run_id)
    with asked(server, f"GET /v1/runs/{run_id}/events HTTP/1.0") as connection:
        _, events = split(rest_of(connection))
    assert events.startswith(b"id: 1\ndata: {")
    assert events.count(b"id: ") == whole.last
    assert events.endswith(b"data: [DONE]\n\n")


def test_a_client_of_http_1_0_that_stops_reading_frees_the_engine(server):
    with asked(server, "POST /v1/chat/completions HTTP/1.0", MUCH) as connection:
        assert connection.recv(8) == b"HTTP/1.1"
        until(lambda: newest_request(server)["status"] == "client_left", 60)
        until(lambda: busy(server) == 0, 60)
        assert b"[DONE]" not in rest_of(connection)


def test_a_whole_reply_has_its_length_for_a_client_of_http_1_0(server):
    body = {"model": "tiny", "messages": QUESTION, "max_tokens": 3}
    with asked(server, "POST /v1/chat/completions HTTP/1.0", body) as connection:
        head, reply = split(rest_of(connection))
    assert f"content-length: {len(reply)}" in head
    assert json.loads(reply)["choices"][0]["finish_reason"] == "length"
