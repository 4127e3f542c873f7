"""How long models stay, over HTTP."""

from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx

from fixtures.running import BUILTIN, until


def status_of(server):
    return httpx.get(f"{server.url}/v1/status").json()


def post(server, path, **body):
    return httpx.post(f"{server.url}{path}", json=body, timeout=60)


def test_a_loaded_model_is_pinned_and_timed_without_being_started_anew(server):
    post(server, "/load", model_path="tiny", max_seq_length=1024, ttl_s=600)
    [before] = status_of(server)["engines"]
    assert 0 < before["ttl_left_s"] <= 600
    pinned = post(server, "/v1/keep", model_path="tiny", pin=True)
    assert pinned.json() == {"model": "tiny", "ttl_s": 600, "pinned": True}
    timed = post(server, "/v1/keep", model_path="tiny.gguf", ttl_s=0.2, pin=False)
    assert timed.json() == {"model": "tiny", "ttl_s": 0.2, "pinned": False}
    # Asking for it keeps nothing awake.
    until(lambda: status_of(server)["asleep"] == ["tiny"], 30)
    absent = post(server, "/v1/keep", model_path="tiny", pin=True)
    assert (absent.status_code, absent.json()["error"]["code"]) == (409, "no_model_loaded")
    messages = [{"role": "user", "content": "Hello"}]
    answer = post(server, "/v1/chat/completions", messages=messages, max_tokens=3)
    assert answer.json()["model"] == "tiny"
    [after] = status_of(server)["engines"]
    assert after["pid"] != before["pid"]
    assert after["loaded"]["context_length"] == 1024


def test_a_model_that_answers_is_unloaded_only_by_force(server):
    post(server, "/load", model_path="tiny")
    with ThreadPoolExecutor() as threads:
        messages = [{"role": "user", "content": "Hello"}]
        asking = threads.submit(
            post, server, "/v1/chat/completions", model="tiny", messages=messages, max_tokens=4000
        )
        until(lambda: status_of(server)["engines"][0]["busy"] == 1, 30)
        refused = post(server, "/unload", model_path="tiny", force=False)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "engine_busy")
        assert status_of(server)["loaded"] == ["tiny"]
        assert post(server, "/unload", model_path="tiny").json()["status"] == "unloaded"
        assert asking.result().json()["error"]["code"] == "model_unloaded"


def test_a_load_is_told_what_there_is_and_whom_it_would_end(server):
    post(server, "/load", model_path=BUILTIN)
    ledger = status_of(server)["ledger"]
    assert 0 < ledger["free"] < ledger["total"]
    assert ledger["promised"] > 0
    told = post(server, "/validate", model_path="tiny").json()
    assert told["stops"] == [BUILTIN]
    assert post(server, "/validate", model_path="tiny", keep_others=True).json()["stops"] == []
