"""Loading and unloading over HTTP: every wrong input has its own answer, and costs nothing."""

import json
import time

import httpx2 as httpx
import pytest

from fixtures.running import BUILTIN, place, serving


@pytest.fixture(scope="module")
def shelf_server(tmp_path_factory, real_model, tiny_model):
    """One server for all wrong inputs: none of them may change what it runs."""
    home = tmp_path_factory.mktemp("load") / "home"
    shelf = home / "shelf"
    place(real_model, home / "models" / f"{BUILTIN}.gguf")
    place(tiny_model, shelf / "tiny.gguf")
    (shelf / "empty").mkdir()
    (shelf / "text.gguf").write_text("<!doctype html><p>Not Found")
    (shelf / "cut.gguf").write_bytes(tiny_model.read_bytes()[:5_000_000])
    place(tiny_model, home.parent / "outside" / "tiny.gguf")
    with serving(home, "--model-dir", str(shelf)) as server:
        loaded = httpx.post(f"{server.url}/load", json={"model_path": "tiny"}, timeout=60)
        assert loaded.status_code == 200
        yield server


@pytest.mark.parametrize(
    ("model_path", "status", "code"),
    [
        ("{shelf}/missing.gguf", 404, "file_not_found"),
        ("{shelf}/empty", 400, "folder_without_models"),
        ("{shelf}/text.gguf", 400, "not_a_gguf_file"),
        ("{shelf}/cut.gguf", 400, "gguf_truncated"),
        ("nobody", 404, "model_not_found"),
        ("nobody/nothing:Q4_K_M", 404, "model_not_downloaded"),
        ("{shelf}/../../outside/tiny.gguf", 403, "path_not_allowed"),
        ("/etc/passwd", 403, "path_not_allowed"),
        ("../../etc/passwd", 403, "path_not_allowed"),
        ("C:\\models\\x.gguf", 403, "path_not_allowed"),
        ("tiny\0.gguf", 400, "invalid_request"),
        ("x" * 5000, 400, "invalid_request"),
    ],
)
def test_each_wrong_model_has_its_own_answer_at_once(shelf_server, model_path, status, code):
    shelf = shelf_server.home / "shelf"
    started = time.monotonic()
    reply = httpx.post(
        f"{shelf_server.url}/load",
        json={"model_path": model_path.replace("{shelf}", str(shelf))},
        timeout=60,
    )
    assert time.monotonic() - started < 2
    error = reply.json()["error"]
    assert reply.status_code == status
    assert error["code"] == code
    assert error["message"]
    assert code == "invalid_request" or error["next_step"]
    assert str(shelf_server.home) not in reply.text
    assert httpx.get(f"{shelf_server.url}/status").json()["loaded"] == ["tiny"]


@pytest.mark.parametrize(
    "fields",
    [
        {"max_seq_length": -1},
        {"max_seq_length": 1_048_577},
        {"cache_type_kv": "q3_0"},
        {"n_parallel": 0},
        {"engine": "transformers"},
        {"pin": True},
        {"extra_args": ["--api_key", "x"]},
        {"extra_args": ["--host=0.0.0.0"]},
        {"lora_adapters": ["/etc/passwd"]},
    ],
)
def test_each_wrong_option_is_refused_by_its_name(shelf_server, fields):
    body = {"model_path": BUILTIN} | fields
    reply = httpx.post(f"{shelf_server.url}/load", json=body, timeout=60)
    assert reply.status_code in (400, 403, 501)
    assert httpx.get(f"{shelf_server.url}/status").json()["loaded"] == ["tiny"]


def test_a_load_tells_all_that_is_true_of_the_model(shelf_server):
    reply = httpx.post(f"{shelf_server.url}/load", json={"model_path": "tiny"}, timeout=60).json()
    assert reply["status"] == "already_loaded"
    assert reply["model"] == "tiny"
    assert reply["context_length"] == reply["native_context_length"] == 8192
    assert reply["engine"] == "llama_server"
    assert reply["memory"]["total"] == sum(
        reply["memory"][part] for part in ("weights", "kv", "projector", "compute")
    )
    assert reply["warnings"] == []


def test_what_is_on_disk_is_listed_with_its_problems(shelf_server):
    cards = httpx.get(f"{shelf_server.url}/v1/models").json()["data"]
    status = {card["id"]: card["status"] for card in cards}
    assert status == {
        "tiny": "loaded",
        BUILTIN: "on_disk",
        "text": "unusable",
        "cut": "unusable",
    }
    assert cards[0]["id"] == "tiny"
    one = httpx.get(f"{shelf_server.url}/v1/models/{BUILTIN}").json()
    assert one["quant"] == "Q4_1"
    assert httpx.get(f"{shelf_server.url}/v1/models/none").status_code == 404


def test_a_validation_measures_and_loads_nothing(shelf_server):
    reply = httpx.post(f"{shelf_server.url}/validate", json={"model_path": BUILTIN}, timeout=60)
    assert reply.json()["valid"] is True
    assert reply.json()["memory"]["weights"] > 90_000_000
    assert httpx.get(f"{shelf_server.url}/status").json()["loaded"] == ["tiny"]


def test_the_server_is_ready_to_chat_when_it_starts_and_remembers_its_last_model(server):
    url = server.url
    with httpx.stream(
        "GET", f"{url}/v1/load/progress", headers={"accept": "text/event-stream"}, timeout=30
    ) as stream:
        phases = []
        for line in stream.iter_lines():
            if line.startswith("data: "):
                phases.append(json.loads(line.removeprefix("data: "))["phase"])
            if phases and phases[-1] == "ready":
                break
    assert httpx.get(f"{url}/status").json()["active_model"] == BUILTIN
    chosen = {"model_path": "tiny", "max_seq_length": 1024}
    assert httpx.post(f"{url}/load", json=chosen, timeout=60).json()["status"] == "loaded"
    server.end()
    with serving(server.home, "--model-dir", str(server.home / "shelf")) as again:
        deadline = time.monotonic() + 20
        while (status := httpx.get(f"{again.url}/status").json())["active_model"] is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert (status["active_model"], status["context_length"]) == ("tiny", 1024)


def test_an_unload_names_what_it_ended(server):
    httpx.post(f"{server.url}/load", json={"model_path": "tiny"}, timeout=60)
    reply = httpx.post(f"{server.url}/unload", timeout=20)
    assert reply.json() == {"status": "unloaded", "model": "tiny"}
    again = httpx.post(f"{server.url}/unload", json={"model_path": "tiny"}, timeout=20)
    assert again.json() == {"status": "not_loaded", "model": "tiny"}
    nothing = httpx.post(f"{server.url}/v1/chat/completions", json={"messages": [{"role": "user"}]})
    assert nothing.json()["error"]["code"] == "no_model_loaded"


def test_folders_are_named_on_the_page_and_not_by_a_key(server):
    shelf = server.home / "second"
    shelf.mkdir()
    body = {"model_dirs": [str(shelf)], "load_on_start": False}
    refused = httpx.put(
        f"{server.url}/v1/settings", json=body, headers={"authorization": "Bearer x"}
    )
    assert refused.status_code == 403
    assert httpx.put(f"{server.url}/v1/settings", json=body).json() == body
    (shelf / "tiny.gguf").write_bytes((server.home / "shelf" / "tiny.gguf").read_bytes())
    ids = [card["id"] for card in httpx.get(f"{server.url}/v1/models").json()["data"]]
    assert "second/tiny" in ids
    missing = body | {"model_dirs": [str(shelf / "none")]}
    assert httpx.put(f"{server.url}/v1/settings", json=missing).status_code == 400
