"""How runs end: cancelled, deleted, failed, interrupted; and how they go on after that."""

import os
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx2 as httpx
import pytest

from eloquio.doctor.faults import stand_in
from eloquio.doctor.faults.program import notes
from fixtures.running import BUILTIN, place, serving, until
from fixtures.runs import ask, ended, read, start

EVENT = 'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'


@pytest.fixture
def tiny_home(home, tiny_model):
    place(tiny_model, home / "models" / "tiny.gguf")
    return home


@pytest.fixture
def tiny_server(tiny_home):
    with serving_tiny(tiny_home) as running:
        yield running


def serving_tiny(home):
    return serving(home, ELOQUIO_LOAD_ON_START="false")


def busy(server):
    return sum(e["busy"] for e in httpx.get(f"{server.url}/v1/status").json()["engines"])


def test_a_cancel_in_the_middle_ends_the_run_and_frees_the_engine(tiny_server):
    run_id = start(tiny_server, max_tokens=7000)
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(read, tiny_server, run_id)
        read(tiny_server, run_id, until=lambda seen: seen.last >= 100)
        run = ask(tiny_server, run_id, "cancel").json()
        assert run["status"] == "cancelled"
        assert busy(tiny_server) == 0
        seen = reading.result()
    assert seen.error["code"] == "run_cancelled"
    assert not seen.is_done
    kept = ask(tiny_server, run_id).json()
    assert kept["last_event"] == seen.last
    assert kept["message"]["content"] == seen.text
    # Late and double ones change nothing.
    assert ask(tiny_server, run_id, "cancel").json() == run
    assert read(tiny_server, run_id).events == seen.events

    again = ask(tiny_server, run_id, "continue").json()
    assert again["status"] in ("queued", "running")
    refused = ask(tiny_server, run_id, "continue")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "run_cannot_continue")
    rest = read(tiny_server, run_id, after=seen.last, until=lambda more: len(more.events) > 50)
    assert min(rest.events) == seen.last + 1
    ask(tiny_server, run_id, "cancel")


def cancel(server, cancel_id):
    reply = httpx.post(f"{server.url}/cancel", json={"cancel_id": cancel_id}, timeout=60)
    return reply.json()["status"]


def test_a_run_is_cancelled_by_its_cancel_id_and_that_is_harmless_at_any_time(tiny_server):
    run_id = start(tiny_server, max_tokens=7000, cancel_id="mine")
    other = start(tiny_server, max_tokens=7000, cancel_id="other")
    begun = read(tiny_server, run_id, until=lambda seen: seen.last >= 20)
    assert cancel(tiny_server, "mine") == "cancelled"
    run = ask(tiny_server, run_id).json()
    assert run["status"] == "cancelled"
    assert run["message"]["content"].startswith(begun.text)
    # Late and double ones hit neither it nor the next of that name.
    assert cancel(tiny_server, "mine") == "ended"
    assert ask(tiny_server, run_id).json() == run
    assert ended(tiny_server, start(tiny_server, max_tokens=2, cancel_id="mine"))["error"] is None
    assert ask(tiny_server, other).json()["status"] in ("queued", "running")

    # Under way again it still goes by that name.
    assert ask(tiny_server, run_id, "continue").status_code == 200
    read(tiny_server, run_id, run["last_event"], until=lambda seen: len(seen.events) > 9)
    assert cancel(tiny_server, "mine") == "cancelled"
    assert ask(tiny_server, run_id).json()["status"] == "cancelled"
    assert cancel(tiny_server, "other") == "cancelled"
    assert busy(tiny_server) == 0


def test_a_cancel_that_overtakes_its_run_leaves_none(tiny_server):
    assert cancel(tiny_server, "early") == "expected"
    body = {"model": "tiny", "messages": [{"role": "user", "content": "Go."}], "cancel_id": "early"}
    refused = httpx.post(f"{tiny_server.url}/v1/runs", json=body, timeout=60)
    assert (refused.status_code, refused.json()["error"]["code"]) == (499, "request_cancelled")
    assert httpx.get(f"{tiny_server.url}/v1/runs").json()["data"] == []
    again = httpx.post(f"{tiny_server.url}/v1/runs", json=body | {"max_tokens": 2}, timeout=60)
    assert ended(tiny_server, again.json()["id"])["status"] == "completed"


def test_a_key_is_remembered_by_a_server_that_was_started_again(tiny_home):
    body = {"model": "tiny", "messages": [{"role": "user", "content": "Go."}], "max_tokens": 3}
    codes = []
    for _ in range(2):
        with serving_tiny(tiny_home) as server:
            headers = {"idempotency-key": "chosen"}
            url = f"{server.url}/v1/runs"
            reply = httpx.post(url, json=body, headers=headers, timeout=60)
            codes.append(reply.status_code)
            assert ended(server, "chosen")["status"] == "completed"
    assert codes == [201, 200]


def test_many_cancels_at_once_are_one(tiny_server):
    run_id = start(tiny_server, max_tokens=7000)
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: ask(tiny_server, run_id, "cancel"), range(8)))
    assert {reply.json()["status"] for reply in replies} == {"cancelled"}


def test_a_cancel_after_the_end_changes_nothing(tiny_server):
    run_id = start(tiny_server, max_tokens=2)
    whole = ended(tiny_server, run_id)
    assert ask(tiny_server, run_id, "cancel").json()["status"] == "completed"
    assert ask(tiny_server, run_id).json() == whole


def test_a_run_is_cancelled_before_its_first_event(home, tmp_path):
    program = stand_in.write(tmp_path / "llama-server", never_answers=True)
    with serving(home, LLAMA_SERVER_PATH=str(program)) as server:
        run_id = start(server, BUILTIN)
        until(lambda: any(note["event"] == "request" for note in notes(program)), 30)
        assert ask(server, run_id).json()["status"] == "running"
        assert ask(server, run_id, "cancel").json()["status"] == "cancelled"
        until(lambda: any(note["event"] == "client_gone" for note in notes(program)), 2)
        seen = read(server, run_id)
        assert (seen.events, seen.error["code"]) == ({}, "run_cancelled")


def test_a_run_is_cancelled_while_its_model_loads_and_the_load_goes_on(home, tmp_path):
    program = stand_in.write(tmp_path / "llama-server", moves_seconds=2)
    with serving(home, LLAMA_SERVER_PATH=str(program), ELOQUIO_LOAD_ON_START="false") as server:
        run_id = start(server, BUILTIN)
        until(lambda: any(note["event"] == "start" for note in notes(program)), 30)
        assert ask(server, run_id).json()["status"] == "queued"
        assert ask(server, run_id, "cancel").json()["status"] == "cancelled"
        until(lambda: httpx.get(f"{server.url}/ready").status_code == 200, 30)
        assert not any(note["event"] == "request" for note in notes(program))
        assert ask(server, run_id, "continue").status_code == 200
        assert ended(server, run_id)["status"] == "completed"


def test_a_delete_ends_what_is_under_way(tiny_server):
    run_id = start(tiny_server, max_tokens=7000)
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(read, tiny_server, run_id)
        read(tiny_server, run_id, until=lambda seen: seen.last >= 50)
        reply = httpx.delete(f"{tiny_server.url}/v1/runs/{run_id}", timeout=60)
        assert reply.status_code == 204
        assert reading.result().error["code"] == "run_cancelled"
    assert busy(tiny_server) == 0
    assert ask(tiny_server, run_id).status_code == 404
    assert httpx.get(f"{tiny_server.url}/v1/runs").json()["data"] == []


def test_a_crash_of_the_engine_fails_the_run_with_the_engines_words(home, tmp_path):
    program = stand_in.write(
        tmp_path / "llama-server", says=["about to fall"], streams=[EVENT], then="crash"
    )
    with serving(home, LLAMA_SERVER_PATH=str(program)) as server:
        run_id = start(server, BUILTIN)
        seen = read(server, run_id)
        assert seen.text == "Hel"
        assert not seen.is_done
        assert seen.error["code"] == "engine_crashed"
        assert "about to fall" in seen.error["evidence"]
        run = ask(server, run_id).json()
        assert (run["status"], run["error"]) == ("failed", seen.error)
        assert read(server, run_id).error == seen.error


def test_a_run_goes_on_after_a_crash_of_the_real_engine(tiny_server):
    run_id = start(tiny_server, max_tokens=5000)
    seen = read(tiny_server, run_id, until=lambda seen: seen.last >= 100)
    [engine] = httpx.get(f"{tiny_server.url}/v1/status").json()["engines"]
    os.kill(engine["pid"], signal.SIGKILL)
    run = ended(tiny_server, run_id)
    assert (run["status"], run["error"]["code"]) == ("failed", "engine_crashed")
    assert "SIGKILL" in run["error"]["message"]
    assert run["message"]["content"].startswith(seen.text)
    assert ask(tiny_server, run_id, "continue").status_code == 200
    rest = read(
        tiny_server, run_id, after=run["last_event"], until=lambda more: len(more.events) > 9
    )
    assert min(rest.events) == run["last_event"] + 1
    assert rest.text
    ask(tiny_server, run_id, "cancel")


@pytest.mark.parametrize(
    ("behaviour", "code", "text"),
    [
        ({"text": "Hel", "then": "error"}, "engine_error", "Hel "),
        ({"text": "Hel", "then": "close"}, "engine_unreachable", "Hel "),
        (
            {"refuses": (400, {"error": {"code": 400, "message": "odd"}})},
            "engine_rejected_request",
            "",
        ),
    ],
)
def test_an_engine_that_breaks_off_fails_the_run_by_its_cause(
    home, tmp_path, behaviour, code, text
):
    program = stand_in.write(tmp_path / "llama-server", **behaviour)
    with serving(home, LLAMA_SERVER_PATH=str(program)) as server:
        run_id = start(server, BUILTIN)
        seen = read(server, run_id)
        assert (seen.error["code"], seen.text, seen.is_done) == (code, text, False)
        assert ask(server, run_id).json()["status"] == "failed"


def test_a_model_that_cannot_be_loaded_fails_the_run(home, tmp_path):
    program = stand_in.write(tmp_path / "llama-server", says=["error: no luck"], exits=1)
    with serving(home, LLAMA_SERVER_PATH=str(program), ELOQUIO_LOAD_ON_START="false") as server:
        seen = read(server, start(server, BUILTIN))
        assert seen.error["code"].startswith("engine_")
        assert "no luck" in seen.error["evidence"]


def test_a_request_that_names_no_model_where_there_is_none_makes_no_run(tiny_server):
    body = {"messages": [{"role": "user", "content": "Hello"}]}
    reply = httpx.post(f"{tiny_server.url}/v1/runs", json=body, timeout=60)
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "no_model_loaded")
    assert httpx.get(f"{tiny_server.url}/v1/runs").json()["data"] == []


def test_a_disk_that_fails_ends_no_run_and_is_told(tiny_server):
    def on_disk(statement):
        with closing(sqlite3.connect(tiny_server.home / "eloquio.db", timeout=20)) as database:
            database.execute(statement)

    run_id = start(tiny_server, max_tokens=2000)
    read(tiny_server, run_id, until=lambda seen: seen.last >= 5)
    on_disk("ALTER TABLE run_events RENAME TO elsewhere")
    seen = read(tiny_server, run_id)
    assert seen.is_done
    run = ask(tiny_server, run_id).json()
    assert (run["status"], run["is_kept"]) == ("completed", False)
    assert run["message"]["content"] == seen.text
    assert run["usage"]["completion_tokens"] == 2000
    assert "run_not_kept" in (tiny_server.home / "stderr.txt").read_text()
    refused = ask(tiny_server, run_id, "continue")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "run_cannot_continue")
    on_disk("ALTER TABLE elsewhere RENAME TO run_events")
    until(lambda: ask(tiny_server, run_id).json()["is_kept"], 30)
    tiny_server.end()
    with serving_tiny(tiny_server.home) as again:
        assert read(again, run_id).events == seen.events
        assert ask(again, run_id).json()["status"] == "completed"


def test_an_unload_fails_the_run_by_its_name(tiny_server):
    run_id = start(tiny_server, max_tokens=7000)
    read(tiny_server, run_id, until=lambda seen: seen.last >= 10)
    httpx.post(f"{tiny_server.url}/unload", json={"model_path": "tiny"}, timeout=60)
    assert ended(tiny_server, run_id)["error"]["code"] == "model_unloaded"


def test_a_kill_of_the_backend_loses_no_more_than_the_last_moment(tiny_home):
    with ThreadPoolExecutor() as threads:
        with serving_tiny(tiny_home) as server:
            run_id = start(server, max_tokens=5000)
            reading = threads.submit(read, server, run_id)
            read(server, run_id, until=lambda seen: seen.last >= 1000)
            killed_at = time.monotonic()
            server.end(signal.SIGKILL)
            seen = reading.result()
        assert not seen.is_done
        with serving_tiny(tiny_home) as server:
            run = ask(server, run_id).json()
            assert run["status"] == "interrupted"
            assert run["error"]["code"] == "run_interrupted"
            assert run["last_event"] >= 500
            lost = [number for number in seen.events if number > run["last_event"]]
            # A write every 0.2 s makes it 0.25 s; the rest is for a machine that is busy elsewhere.
            for number in lost:
                assert killed_at - seen.arrived[number] < 1.5
            kept = read(server, run_id)
            assert kept.error["code"] == "run_interrupted"
            both = kept.events.keys() & seen.events.keys()
            assert all(kept.events[number] == seen.events[number] for number in both)
            assert run["message"]["content"] == kept.text

            assert ask(server, run_id, "continue").status_code == 200
            rest = read(server, run_id, after=kept.last, until=lambda more: len(more.events) > 9)
            if lost:
                url = f"{server.url}/v1/runs/{run_id}/events"
                reply = httpx.get(url, headers={"last-event-id": str(seen.last)})
                assert reply.json()["error"]["code"] == "run_events_lost"
            # Numbers that a reader may have seen and that were lost are not given again.
            assert min(rest.events) > seen.last
            ask(server, run_id, "cancel")
            whole = read(server, run_id)
            assert whole.text.startswith(kept.text + rest.text)
            assert ask(server, run_id).json()["message"]["content"] == whole.text


def test_an_interrupt_of_the_server_keeps_every_event_that_a_reader_saw(tiny_home):
    with ThreadPoolExecutor() as threads:
        with serving_tiny(tiny_home) as server:
            run_id = start(server, max_tokens=7000)
            reading = threads.submit(read, server, run_id)
            read(server, run_id, until=lambda seen: seen.last >= 200)
            server.end()
            seen = reading.result()
        assert seen.error["code"] == "run_interrupted"
        assert "Traceback" not in (tiny_home / "stderr.txt").read_text()
        with serving_tiny(tiny_home) as server:
            run = ask(server, run_id).json()
            assert (run["status"], run["last_event"]) == ("interrupted", seen.last)
            assert run["message"]["content"] == seen.text
            assert ask(server, run_id, "continue").status_code == 200
            # A reader goes on where it was, as if nothing had happened.
            rest = read(server, run_id, after=seen.last, until=lambda more: len(more.events) > 9)
            assert ask(server, run_id, "cancel").json()["status"] == "cancelled"
            text = ask(server, run_id).json()["message"]["content"]
            assert text.startswith(seen.text + rest.text)
