"""Runs on a real server with the real engine: started, and read by whoever comes."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx
import psutil
import pytest

from eloquio.doctor.faults import stand_in
from fixtures.running import BUILTIN, CAPITAL, place, serving, until
from fixtures.runs import QUESTION, Read, ask, ended, read, start


@pytest.fixture(scope="module")
def server(tmp_path_factory, real_model, tiny_model):
    home = tmp_path_factory.mktemp("runs") / "home"
    place(real_model, home / "models" / f"{BUILTIN}.gguf")
    place(tiny_model, home / "models" / "tiny.gguf")
    settings = {"ELOQUIO_LOAD_ON_START": "false", "ELOQUIO_STALLED_READER_SECONDS": "600"}
    with serving(home, **settings) as running:
        loaded = httpx.post(f"{running.url}/load", json={"model_path": "tiny"}, timeout=60)
        assert loaded.status_code == 200
        yield running


def status_of(server):
    return httpx.get(f"{server.url}/v1/status").json()


def test_a_run_is_read_to_its_end_and_then_told_as_a_whole(server):
    run_id = start(server, max_tokens=20)
    seen = read(server, run_id)
    assert seen.is_done
    assert list(seen.events) == list(range(1, seen.last + 1))
    run = ask(server, run_id).json()
    assert (run["status"], run["finish_reason"], run["error"]) == ("completed", "length", None)
    assert run["message"]["content"] == seen.text
    assert run["usage"]["completion_tokens"] == 20
    assert run["last_event"] == seen.last
    assert run["is_kept"] is True
    assert run["created"] <= run["ended"]


def test_a_run_says_the_same_as_a_chat_and_the_chat_leaves_no_run(server):
    before = httpx.get(f"{server.url}/v1/runs").json()["data"]
    body = {"model": "tiny", "messages": QUESTION, "temperature": 0, "max_tokens": 30}
    chat = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=60).json()
    assert httpx.get(f"{server.url}/v1/runs").json()["data"] == before
    run = ended(server, start(server, max_tokens=30))
    assert run["message"]["content"] == chat["choices"][0]["message"]["content"]


def test_the_stream_has_the_headers_of_one_and_can_be_asked_by_the_address(server):
    run_id = start(server, max_tokens=5)
    whole = read(server, run_id)
    url = f"{server.url}/api/inference/runs/{run_id}/events"
    with httpx.stream("GET", f"{url}?after={whole.last - 1}", timeout=60) as reply:
        text = reply.read().decode()
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    data = whole.events[whole.last].decode()
    assert text == f"id: {whole.last}\ndata: {data}\n\ndata: [DONE]\n\n"
    header = httpx.get(f"{url}?after=1", headers={"last-event-id": str(whole.last)})
    assert header.text == "data: [DONE]\n\n"


def test_a_run_that_has_ended_is_read_from_any_event(server):
    run_id = start(server, max_tokens=25)
    whole = read(server, run_id)
    for number in range(whole.last + 1):
        tail = read(server, run_id, after=number)
        assert tail.is_done
        assert list(tail.events.items()) == list(whole.events.items())[number:]


def test_a_reader_dropped_again_and_again_sees_what_one_never_dropped_sees(server):
    run_id = start(server, max_tokens=3000)
    with ThreadPoolExecutor() as threads:
        whole = threads.submit(read, server, run_id)
        dropped = Read()
        while not dropped.is_done:
            enough = dropped.last + 1 + dropped.last // 7
            read(
                server,
                run_id,
                after=dropped.last,
                until=lambda seen, enough=enough: seen.last >= enough,
                into=dropped,
            )
    assert whole.result().is_done
    assert dropped.events == whole.result().events
    assert len(dropped.events) > 3000


def test_a_run_goes_on_while_nobody_reads(server):
    run_id = start(server, max_tokens=1500)
    begun = read(server, run_id, until=lambda seen: seen.last >= 3)
    run = ended(server, run_id)
    assert (run["status"], run["usage"]["completion_tokens"]) == ("completed", 1500)
    assert run["message"]["content"].startswith(begun.text)


def test_readers_that_do_not_read_hold_up_nothing_and_take_little_memory(server):
    backend = psutil.Process(server.process.pid)
    run_id = start(server, max_tokens=5000)
    read(server, run_id, until=lambda seen: seen.last >= 3)
    before = backend.memory_info().rss
    host, port = server.url.removeprefix("http://").split(":")
    slow = [socket.socket() for _ in range(40)]
    try:
        for connection in slow:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((host, int(port)))
            path = f"/v1/runs/{run_id}/events"
            connection.sendall(f"GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\n\r\n".encode())
        whole = read(server, run_id)
        assert ended(server, run_id)["status"] == "completed"
        size = sum(len(event) for event in whole.events.values())
        # Each with an answer of its own would take forty times that.
        assert size > 1_000_000
        assert backend.memory_info().rss - before < 15 * size
        # Whoever was slow gets the whole of it all the same.
        raw = b""
        while b"data: [DONE]" not in raw:
            piece = slow[0].recv(65536)
            assert piece, "the stream ended early"
            raw += piece
        assert raw.count(b"\nid: ") == len(whole.events)
    finally:
        for connection in slow:
            connection.close()


def test_runs_are_listed_newest_first_page_by_page(server):
    started = [start(server, max_tokens=1) for _ in range(3)]
    for run_id in started:
        ended(server, run_id)
    first = httpx.get(f"{server.url}/v1/runs", params={"limit": 2}).json()
    assert [run["id"] for run in first["data"]] == started[:0:-1]
    assert first["has_more"] is True
    rest = httpx.get(f"{server.url}/v1/runs", params={"limit": 1, "before": started[1]}).json()
    assert [run["id"] for run in rest["data"]] == started[:1]
    assert "message" not in rest["data"][0]


def post(server, key, **fields):
    body = {"model": "tiny", "messages": QUESTION, "max_tokens": 5} | fields
    headers = {"idempotency-key": key}
    return httpx.post(f"{server.url}/v1/runs", json=body, headers=headers, timeout=60)


def test_a_run_has_the_id_that_its_client_chose_and_is_begun_once(server):
    first = post(server, "chosen-1")
    assert (first.status_code, first.json()["id"]) == (201, "chosen-1")
    assert post(server, "chosen-1").status_code == 200
    seen = read(server, "chosen-1")
    assert seen.is_done
    # Neither its end nor another body makes it another run.
    again = post(server, "chosen-1", max_tokens=9)
    assert again.status_code == 200
    assert again.json().items() <= ended(server, "chosen-1").items()
    assert read(server, "chosen-1").events == seen.events
    ids = [run["id"] for run in httpx.get(f"{server.url}/v1/runs").json()["data"]]
    assert ids.count("chosen-1") == 1


def test_of_many_requests_at_once_with_one_key_one_begins_a_run(server):
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: post(server, "chosen-2"), range(8)))
    assert sorted(reply.status_code for reply in replies) == [200] * 7 + [201]
    assert {reply.json()["id"] for reply in replies} == {"chosen-2"}
    assert ended(server, "chosen-2")["usage"]["completion_tokens"] == 5


def test_what_was_refused_can_be_asked_again_under_its_key(server):
    assert post(server, "chosen-3", n=2).status_code == 400
    assert ask(server, "chosen-3").status_code == 404
    assert post(server, "chosen-3").status_code == 201


@pytest.mark.parametrize("key", ["", "a/b", "x" * 65])
def test_a_key_that_can_be_no_id_is_refused(server, key):
    reply = post(server, key)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "idempotency-key")


def test_a_run_that_was_too_short_goes_on_where_it_stopped(server):
    run_id = start(server, BUILTIN, messages=[{"role": "user", "content": CAPITAL}], max_tokens=4)
    first = read(server, run_id)
    assert ask(server, run_id).json()["finish_reason"] == "length"
    again = ask(server, run_id, "continue")
    assert again.status_code == 200
    rest = read(server, run_id, after=first.last)
    assert rest.is_done
    assert min(rest.events) == first.last + 1
    run = ask(server, run_id).json()
    # Not a word of it twice.
    assert run["message"]["content"] == first.text + rest.text == "The capital of France is Paris."
    whole = read(server, run_id)
    assert whole.events == first.events | rest.events
    assert b"".join(whole.events.values()).count(b'"role"') == 1
    refused = ask(server, run_id, "continue")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "run_cannot_continue")


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"model": "nobody"}, 404, "model_not_found"),
        ({"messages": []}, 400, "invalid_request"),
        ({"n": 2}, 400, "invalid_request"),
        ({"stream_options": "yes"}, 400, "invalid_request"),
        ({"enable_tools": True}, 501, "not_implemented"),
    ],
)
def test_a_request_that_is_wrong_makes_no_run(server, fields, status, code):
    before = httpx.get(f"{server.url}/v1/runs").json()
    body = {"model": "tiny", "messages": QUESTION} | fields
    reply = httpx.post(f"{server.url}/v1/runs", json=body, timeout=60)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
    assert httpx.get(f"{server.url}/v1/runs").json() == before


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("GET", "/events"), ("POST", "/cancel"), ("POST", "/continue"), ("DELETE", "")],
)
def test_a_run_that_is_not_there_is_a_404_by_every_way(server, method, path):
    reply = httpx.request(method, f"{server.url}/v1/runs/run-none{path}")
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "run_not_found")


@pytest.mark.parametrize("number", ["-1", "x", "1.5"])
def test_a_last_event_that_is_no_number_is_refused(server, number):
    run_id = start(server, max_tokens=1)
    url = f"{server.url}/v1/runs/{run_id}/events"
    for reply in (
        httpx.get(url, headers={"last-event-id": number}),
        httpx.get(url, params={"after": number}),
    ):
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid_request")


def test_an_event_that_never_was_is_told_as_lost(server):
    run_id = start(server, max_tokens=1)
    ended(server, run_id)
    reply = httpx.get(f"{server.url}/v1/runs/{run_id}/events", params={"after": 99})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "run_events_lost")


def test_a_stream_cut_into_single_bytes_is_whole_again(home, tmp_path):
    text = "Où est la \N{LLAMA}? «Là.»"
    program = stand_in.write(tmp_path / "llama-server", text=text, bytes_at_once=1)
    with serving(home, LLAMA_SERVER_PATH=str(program)) as server:
        run_id = start(server, BUILTIN)
        seen = read(server, run_id)
        assert seen.text == f"{text} "
        assert [json.loads(event)["model"] for event in seen.events.values()]


def test_an_unfinished_run_is_seen_by_a_reader_as_it_comes(home, tmp_path):
    program = stand_in.write(tmp_path / "llama-server", text="one two three", pause_seconds=0.5)
    with serving(home, LLAMA_SERVER_PATH=str(program)) as server:
        until(lambda: status_of(server)["active_model"] == BUILTIN, 30)
        seen = read(server, start(server, BUILTIN))
        # None was held back for another, but the last words: they come together.
        assert seen.arrived[4] - seen.arrived[1] > 0.7
