"""Loading and unloading over HTTP: every wrong input has its own answer, and costs nothing."""

import asyncio
import json
import sqlite3
import sys
import time
from contextlib import closing

import httpx2 as httpx
import pytest

from eloquio.store.database import open_database
from eloquio.store.preferences import PreferenceStore
from fixtures.running import BUILTIN, place, serving
from fixtures.safetensors_files import write_adapter_folder, write_folder

PAGE = {"sec-fetch-site": "same-origin"}
"""What a browser says, and no page can forge."""


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
    ("fields", "status", "code"),
    [
        ({"max_seq_length": -1}, 400, "invalid_request"),
        ({"max_seq_length": 1_048_577}, 400, "invalid_request"),
        ({"cache_type_kv": "q3_0"}, 400, "invalid_request"),
        ({"n_parallel": 0}, 400, "invalid_request"),
        ({"engine": "transformers"}, 400, "invalid_request"),
        ({"engine": "remote"}, 501, "not_implemented"),
        ({"pin": "often"}, 400, "invalid_request"),
        ({"ttl_s": -1}, 400, "invalid_request"),
        ({"extra_args": ["--api_key", "x"]}, 400, "invalid_request"),
        ({"extra_args": ["--host=0.0.0.0"]}, 400, "invalid_request"),
    ],
)
def test_each_wrong_option_is_refused_by_its_name(shelf_server, fields, status, code):
    body = {"model_path": BUILTIN} | fields
    reply = httpx.post(f"{shelf_server.url}/load", json=body, timeout=60)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (status, code)
    assert error["param"] == next(iter(fields))
    assert httpx.get(f"{shelf_server.url}/status").json()["loaded"] == ["tiny"]


def test_an_adapter_outside_the_folders_is_not_taken_for_the_model(shelf_server):
    body = {"model_path": BUILTIN, "lora_adapters": ["/etc/passwd"]}
    reply = httpx.post(f"{shelf_server.url}/load", json=body, timeout=60)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (403, "path_not_allowed")
    assert error["param"] == "lora_adapters"


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
        assert until_loaded(again, "tiny")["context_length"] == 1024


def test_an_unload_names_what_it_ended(server):
    httpx.post(f"{server.url}/load", json={"model_path": "tiny"}, timeout=60)
    reply = httpx.post(f"{server.url}/unload", timeout=20)
    assert reply.json() == {"status": "unloaded", "model": "tiny"}
    again = httpx.post(f"{server.url}/unload", json={"model_path": "tiny"}, timeout=20)
    assert again.json() == {"status": "not_loaded", "model": "tiny"}
    chat = {"messages": [{"role": "user", "content": "Hello"}]}
    nothing = httpx.post(f"{server.url}/v1/chat/completions", json=chat)
    assert nothing.json()["error"]["code"] == "no_model_loaded"


def test_folders_are_named_on_the_page_and_not_by_a_key(server):
    shelf = server.home / "second"
    shelf.mkdir()
    url = f"{server.url}/v1/settings"
    body = {"model_dirs": [str(shelf)], "load_on_start": False, "worker_envs": []}
    for headers in ({}, PAGE | {"authorization": "Bearer x"}, PAGE | {"x-api-key": "x"}):
        for refused in (
            httpx.get(url, headers=headers),
            httpx.put(url, json=body, headers=headers),
        ):
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "person_only")
            assert str(server.home) not in refused.text
    assert httpx.put(url, json=body, headers=PAGE).json() == body
    assert httpx.get(url, headers=PAGE).json() == body
    (shelf / "tiny.gguf").write_bytes((server.home / "shelf" / "tiny.gguf").read_bytes())
    ids = [card["id"] for card in httpx.get(f"{server.url}/v1/models").json()["data"]]
    assert "second/tiny" in ids
    missing = body | {"model_dirs": [str(shelf / "none")]}
    assert httpx.put(url, json=missing, headers=PAGE).status_code == 400


def test_environments_of_the_worker_are_kept_until_others_are_chosen(server):
    url = f"{server.url}/v1/settings"
    chosen = {"model_dirs": [], "load_on_start": False}
    own = {
        "python": sys.executable,
        "transformers_version": "4.51",
        "architectures": ["OwnForCausalLM"],
        "models": ["org/mine"],
    }

    assert httpx.put(url, json=chosen | {"worker_envs": [own]}, headers=PAGE).status_code == 200
    assert httpx.put(url, json=chosen, headers=PAGE).json()["worker_envs"] == [own]
    for wrong in (
        own | {"python": "/gone/python"},
        own | {"python": "python"},
        {"python": sys.executable},
        own | {"transformers_version": ">=4"},
    ):
        refused = httpx.put(url, json=chosen | {"worker_envs": [wrong]}, headers=PAGE)
        assert refused.status_code == 400
        assert "worker_envs" in refused.json()["error"]["param"]
    assert httpx.get(url, headers=PAGE).json()["worker_envs"] == [own]
    assert httpx.put(url, json=chosen | {"worker_envs": []}, headers=PAGE).status_code == 200


def test_safetensors_are_listed_and_looked_at_without_being_loaded(server):
    write_folder(server.home / "shelf" / "org" / "tensors")
    write_adapter_folder(server.home / "shelf" / "adapter", "org/tensors")
    httpx.post(f"{server.url}/unload", timeout=20)

    cards = {c["id"]: c for c in httpx.get(f"{server.url}/v1/models").json()["data"]}
    assert (cards["adapter"]["is_lora"], cards["adapter"]["base_model"]) == (True, "org/tensors")
    assert not cards["org/tensors"]["is_gguf"]
    told = httpx.post(f"{server.url}/validate", json={"model_path": "adapter"}, timeout=20).json()
    assert (told["valid"], told["is_lora"], told["is_gguf"]) == (True, True, False)
    assert (told["base_model"], told["task"]) == ("org/tensors", "chat")
    assert told["memory"]["total"] > told["memory"]["weights"] > 0
    assert httpx.get(f"{server.url}/status").json()["loaded"] == []


def test_settings_are_open_to_a_browser_that_signed_in_from_another_machine(home):
    """Over plain http a browser doesn't say which page asks, but it has the session's cookie."""
    with (
        serving(home, ELOQUIO_API_KEY="a key", ELOQUIO_LOAD_ON_START="false") as server,
        httpx.Client(base_url=server.url) as browser,
    ):
        assert browser.get("/v1/settings").json()["error"]["code"] == "key_required"
        by_key = browser.get("/v1/settings", headers={"authorization": "Bearer a key"})
        assert by_key.json()["error"]["code"] == "person_only"
        signed_in = browser.post("/auth/session", data={"key": "a key"})
        assert signed_in.status_code < 400
        assert browser.get("/v1/settings").json()["load_on_start"]


def test_a_load_that_cannot_be_remembered_is_still_a_load(home):
    with serving(home, ELOQUIO_LOAD_ON_START="false") as server:
        with closing(sqlite3.connect(home / "eloquio.db")) as database:
            database.execute("DROP TABLE preferences")
        reply = httpx.post(f"{server.url}/load", json={"model_path": BUILTIN}, timeout=60)
        assert reply.json()["status"] == "loaded"
    assert "load_not_remembered" in (home / "stderr.txt").read_text()


@pytest.mark.parametrize(
    "last_load",
    [{"model_path": "deleted"}, {"model_path": BUILTIN, "max_seq_length": "of another version"}],
)
def test_the_built_in_model_comes_where_the_last_one_cannot(home, last_load):
    asyncio.run(remember(home, last_load))
    with serving(home) as server:
        until_loaded(server, BUILTIN)
    assert "last_model_cannot_be_loaded" in (home / "stderr.txt").read_text()


def test_a_model_asked_for_at_once_is_not_replaced_by_the_first_load(server):
    """Whichever comes first: the load of the start, or the person's."""
    assert httpx.post(f"{server.url}/load", json={"model_path": "tiny"}, timeout=60).is_success
    assert httpx.get(f"{server.url}/ready").is_success
    status = httpx.get(f"{server.url}/status").json()
    assert (status["loaded"], status["loading"]) == (["tiny"], [])


async def remember(home, load):
    database = await open_database(home)
    await (await PreferenceStore.open(database)).remember_load(load)
    await database.close()


def until_loaded(server, model):
    deadline = time.monotonic() + 20
    while (status := httpx.get(f"{server.url}/status").json())["active_model"] != model:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return status
