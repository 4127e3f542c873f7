"""Chat through a real server to the real engine, with the official client."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx
import openai
import psutil
import pytest
from openai import OpenAI

from eloquio.doctor.faults import gguf_file, stand_in
from fixtures.running import BUILTIN, CAPITAL, place, serving, until

QUESTION = [{"role": "user", "content": CAPITAL}]


@pytest.fixture(scope="module")
def server(tmp_path_factory, real_model, tiny_model):
    """One for all tests that end no server; a model that is asked for is loaded by that."""
    home = tmp_path_factory.mktemp("chat") / "home"
    place(real_model, home / "models" / f"{BUILTIN}.gguf")
    place(tiny_model, home / "shelf" / "tiny.gguf")
    with serving(home, "--model-dir", str(home / "shelf")) as running:
        until_ready(running)
        yield running


@pytest.fixture
def own_server(home, tiny_model):
    place(tiny_model, home / "models" / "tiny.gguf")
    with serving(home) as running:
        until_ready(running)
        yield running


EVENT = 'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
FAILING = {
    "crashes": {"says": ["about to fall"], "streams": [EVENT], "then": "crash"},
    "odd": {"refuses": (500, {"error": {"code": 500, "message": "odd"}})},
    "refuses": {"refuses": (400, {"error": {"code": 400, "message": "odd"}})},
    "babbles": {"refuses": (500, "no object")},
}


@pytest.fixture(scope="module")
def failing_server(tmp_path_factory):
    """Its engine fails at each model in that model's way."""
    folder = tmp_path_factory.mktemp("failing")
    shelf = folder / "home" / "shelf"
    shelf.mkdir(parents=True)
    for model, behaviour in FAILING.items():
        gguf_file.write_model(shelf / f"{model}.gguf", weights_bytes=2**20)
        stand_in.write_for(shelf / f"{model}.gguf", **behaviour)
    program = str(stand_in.write(folder / "llama-server"))
    flags = ("--no-load-on-start", "--model-dir", str(shelf))
    with serving(folder / "home", *flags, LLAMA_SERVER_PATH=program) as running:
        yield running


@pytest.fixture
def client(server):
    with OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def ask(server, **fields):
    body = {"model": BUILTIN, "messages": QUESTION, "temperature": 0} | fields
    return httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=60)


def engine_of(server):
    [engine] = httpx.get(f"{server.url}/v1/status").json()["engines"]
    return engine


def until_ready(server):
    until(lambda: httpx.get(f"{server.url}/ready").status_code == 200, 30)


def test_the_official_client_gets_an_answer(client, server):
    answer = client.chat.completions.create(model=BUILTIN, messages=QUESTION, temperature=0)
    assert "Paris" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == BUILTIN
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.prompt_tokens > 10


def test_the_official_client_streams_the_same_answer(client):
    whole = client.chat.completions.create(model=BUILTIN, messages=QUESTION, temperature=0)
    chunks = list(
        client.chat.completions.create(
            model=BUILTIN,
            messages=QUESTION,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert {chunk.model for chunk in chunks} == {BUILTIN}
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_the_bytes_of_a_stream_end_with_done_and_carry_its_headers(server):
    body = {"model": BUILTIN, "messages": QUESTION, "stream": True, "max_tokens": 5}
    body |= {"temperature": 0}
    with httpx.stream("POST", f"{server.url}/v1/chat/completions", json=body, timeout=60) as reply:
        text = reply.read().decode()
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    assert reply.headers["x-request-id"]
    assert text.endswith("data: [DONE]\n\n")
    assert '"finish_reason":"length"' in text


def test_the_same_route_answers_at_the_bare_root_and_under_the_old_prefix(server):
    body = {"model": BUILTIN, "messages": QUESTION, "temperature": 0}
    for path in ("/chat/completions", "/api/inference/chat/completions"):
        reply = httpx.post(f"{server.url}{path}", json=body, timeout=60)
        assert "Paris" in reply.json()["choices"][0]["message"]["content"]


def test_a_wrong_model_is_not_answered_by_another(client):
    with pytest.raises(openai.NotFoundError) as refusal:
        client.chat.completions.create(model="org/nothing", messages=QUESTION)
    assert refusal.value.code == "model_not_downloaded"


def test_a_model_on_disk_is_loaded_on_request(client, server):
    answer = client.chat.completions.create(model="tiny", messages=QUESTION, max_tokens=3)
    assert answer.model == "tiny"
    assert answer.choices[0].finish_reason == "length"
    assert engine_of(server)["model"] == "tiny"


def test_the_model_of_the_start_is_loaded_again_after_another_took_its_place(server):
    for model in ("tiny", BUILTIN):
        reply = ask(server, model=model, max_tokens=2)
        assert (reply.status_code, reply.json()["model"]) == (200, model)


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"content": "no role"}]}, 400, "messages.0.role"),
        ({"enable_tools": True}, 501, "enable_tools"),
        ({"image_base64": "aGk="}, 415, "image_base64"),
        ({"use_adapter": "name"}, 501, "use_adapter"),
    ],
)
def test_what_cannot_be_done_is_refused_by_its_name(server, fields, status, param):
    reply = ask(server, **fields)
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (status, param)
    assert error["message"]
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'{"messages": "\xff"}'])
def test_a_body_that_is_no_request_is_a_400(server, body):
    headers = {"content-type": "application/json"}
    reply = httpx.post(f"{server.url}/v1/chat/completions", content=body, headers=headers)
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "invalid_request"


def test_a_prompt_that_is_too_long_is_told_with_both_numbers(server):
    reply = ask(server, messages=[{"role": "user", "content": "word " * 9000}])
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["code"] == "context_length_exceeded"
    assert "8192" in error["message"]


def test_a_repetition_penalty_reaches_the_engine_under_its_name(server):
    reply = ask(server, repetition_penalty=1.3, stream=False, max_tokens=2)
    assert reply.status_code == 200
    refused = ask(server, repetition_penalty=-1)
    assert refused.json()["error"]["param"] == "repetition_penalty"


def test_an_engine_that_crashes_in_an_answer_ends_it_with_its_error(failing_server):
    body = {"model": "crashes", "messages": QUESTION, "stream": True}
    url = f"{failing_server.url}/v1"
    text = httpx.post(f"{url}/chat/completions", json=body, timeout=60).text
    assert text.startswith(EVENT)
    assert "[DONE]" not in text
    error = json.loads(text.removeprefix(EVENT).removeprefix("data: "))["error"]
    assert error["code"] == "engine_crashed"
    assert "SIGSEGV" in error["message"]
    assert "about to fall" in error["evidence"]
    with (
        OpenAI(base_url=url, api_key="any", max_retries=0) as client,
        pytest.raises(openai.APIError, match="SIGSEGV"),
    ):
        list(client.chat.completions.create(model="crashes", messages=QUESTION, stream=True))


@pytest.mark.parametrize(
    ("model", "status", "code"),
    [
        ("odd", 502, "engine_error"),
        ("refuses", 400, "engine_rejected_request"),
        ("babbles", 502, "engine_error"),
    ],
)
def test_an_engines_own_error_keeps_its_words(failing_server, model, status, code):
    reply = ask(failing_server, model=model)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
    assert "odd" in reply.text or "no object" in reply.text


def test_a_kill_of_the_backend_ends_its_engine(own_server):
    engine = psutil.Process(engine_of(own_server)["pid"])
    own_server.end(signal.SIGKILL)
    until(lambda: not engine.is_running() or engine.status() == psutil.STATUS_ZOMBIE, 20)


def test_twenty_starts_and_stops_leave_nothing_behind(tmp_path, tiny_model):
    def start_and_stop(home, times):
        place(tiny_model, home / "models" / "tiny.gguf")
        for _ in range(times):
            with serving(home, ELOQUIO_LOAD_ON_START="false") as server:
                load = httpx.post(f"{server.url}/load", json={"model_path": "tiny"}, timeout=60)
                assert load.status_code == 200
                yield psutil.Process(engine_of(server)["pid"])
                server.end()
        assert not (home / "run").exists()

    others = psutil.Process().children(recursive=True)
    homes = [tmp_path / "one", tmp_path / "other"]
    # Two beside each other: neither may take what is the other's for what an earlier one left.
    with ThreadPoolExecutor() as threads:
        runs = threads.map(lambda home: list(start_and_stop(home, times=10)), homes)
        engines = [engine for ended in runs for engine in ended]
    assert len(engines) == 20
    assert not [engine for engine in engines if engine.is_running()]
    assert set(psutil.Process().children(recursive=True)) <= set(others)


def test_an_interrupt_ends_everything_even_in_an_answer(own_server):
    load = httpx.post(f"{own_server.url}/load", json={"model_path": "tiny"}, timeout=60)
    assert load.status_code == 200
    engine = psutil.Process(engine_of(own_server)["pid"])
    body = {"model": "tiny", "messages": QUESTION, "stream": True, "max_tokens": 8000}
    with httpx.stream("POST", f"{own_server.url}/v1/chat/completions", json=body) as reply:
        chunks = reply.iter_raw()
        next(chunks)
        own_server.process.send_signal(signal.SIGINT)
        end = b"".join(chunks).rpartition(b"data: ")[2]
        own_server.process.wait(timeout=30)
    assert json.loads(end)["error"]["code"] == "shutting_down"
    assert "Traceback" not in (own_server.home / "stderr.txt").read_text()
    assert not engine.is_running()
    assert not (own_server.home / "run").exists()
