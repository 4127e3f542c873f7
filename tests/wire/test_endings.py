"""How answers end, and that nothing of them is lost, doubled or cut on the way."""

import json

import httpx2 as httpx
import psutil
import pytest

from eloquio.doctor.faults import gguf_file, stand_in
from fixtures.running import BUILTIN, CAPITAL, place, serving

QUESTION = [{"role": "user", "content": CAPITAL}]
HARD = "你好🌍👨‍👩‍👧 ゴ é"


@pytest.fixture(scope="module")
def server(tmp_path_factory, real_model):
    home = tmp_path_factory.mktemp("endings") / "home"
    place(real_model, home / "models" / f"{BUILTIN}.gguf")
    with serving(home, "--no-load-on-start") as running:
        body = {"model_path": BUILTIN}
        httpx.post(f"{running.url}/v1/load", json=body, timeout=120).raise_for_status()
        yield running


@pytest.fixture
def standing_in(tmp_path):
    """A server whose engine behaves as it is told."""

    def start(**behaviour):
        home = tmp_path / "home"
        gguf_file.write_model(home / "shelf" / "model.gguf", weights_bytes=2**20)
        program = stand_in.write(tmp_path / "llama-server", **behaviour)
        flags = ("--no-load-on-start", "--model-dir", str(home / "shelf"))
        return serving(home, *flags, LLAMA_SERVER_PATH=str(program))

    (tmp_path / "home" / "shelf").mkdir(parents=True)
    return start


def ask(server, path="/v1/chat/completions", **fields):
    """The answer to `fields`; a chat's greedy one unless they say otherwise."""
    counts = path.endswith(("_tokens", "apply-template"))
    body = fields if counts else {"temperature": 0} | fields
    if "messages" not in body and "chat" in path:
        body["messages"] = QUESTION
    return httpx.post(f"{server.url}{path}", json=body, timeout=120)


def events(reply):
    return [
        json.loads(line.removeprefix("data: "))
        for line in reply.text.split("\n")
        if line.startswith("data: {")
    ]


def text_of(reply):
    if not reply.headers["content-type"].startswith("text/event-stream"):
        return reply.json()["choices"][0]["message"]["content"]
    choices = [choice for event in events(reply) for choice in event["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def saying(text):
    """Makes the model say exactly this."""
    return {"grammar": f"root ::= {json.dumps(text, ensure_ascii=False)}"}


@pytest.mark.parametrize("stream", [True, False])
def test_characters_of_many_tokens_come_whole(server, stream):
    assert text_of(ask(server, stream=stream, **saying(HARD))) == HARD


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_characters_come_whole_wherever_the_engines_bytes_are_cut(standing_in, size):
    with standing_in(text=HARD, bytes_at_once=size) as server:
        told = "".join(f"{word} " for word in HARD.split(" "))
        assert text_of(ask(server, model="model", stream=True)) == told
        assert text_of(ask(server, model="model")) == told


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("said", "stop", "left"),
    [
        ("one two three", " two", "one"),
        ("one two three", ["nothing", "thre"], "one two "),
        ("一二三四五", "三四", "一二"),
        ("a🌍b🌍c", "b🌍", "a🌍"),
    ],
)
def test_a_stop_string_never_leaks(server, said, stop, left, stream):
    reply = ask(server, stream=stream, stop=stop, **saying(said))
    assert text_of(reply) == left
    last = reply.json() if not stream else [e for e in events(reply) if e["choices"]][-1]
    assert last["choices"][0]["finish_reason"] == "stop"


def test_each_api_says_that_its_limit_was_met(server):
    assert ask(server, max_tokens=5).json()["choices"][0]["finish_reason"] == "length"
    streamed = events(ask(server, max_tokens=5, stream=True))
    assert streamed[-1]["choices"][0]["finish_reason"] == "length"
    completion = ask(server, "/v1/completions", prompt="Once", max_tokens=5)
    assert completion.json()["choices"][0]["finish_reason"] == "length"
    message = ask(server, "/v1/messages", messages=QUESTION, max_tokens=5)
    assert message.json()["stop_reason"] == "max_tokens"
    response = ask(server, "/v1/responses", input=CAPITAL, max_output_tokens=5).json()
    assert response["status"] == "incomplete"
    assert response["incomplete_details"]["reason"] == "max_output_tokens"


def test_an_end_exactly_at_the_limit_is_the_models_own(server):
    free = ask(server).json()
    assert free["choices"][0]["finish_reason"] == "stop"
    limited = ask(server, max_tokens=free["usage"]["completion_tokens"]).json()
    assert limited["choices"][0]["message"] == free["choices"][0]["message"]
    assert limited["choices"][0]["finish_reason"] == "stop"


def test_an_answer_without_a_limit_comes_to_its_end(standing_in):
    with standing_in(text="word", repeats=20_000) as server:
        reply = ask(server, model="model", stream=True)
        assert text_of(reply) == "word " * 20_000
        assert reply.text.endswith("data: [DONE]\n\n")
        assert text_of(ask(server, model="model")) == "word " * 20_000


def test_a_chunk_of_a_long_answer_costs_no_more_than_one_of_a_short_answer(standing_in):
    """By the processor's time that the server takes: what is searched again grows with the text."""

    def seconds_for(chunks):
        with standing_in(text="a" * 1000, repeats=chunks) as server:
            backend = psutil.Process(server.process.pid)
            before = sum(backend.cpu_times()[:2])
            assert ask(server, model="model", stream=True).text.count("data: ") > chunks
            return sum(backend.cpu_times()[:2]) - before

    assert seconds_for(40_000) / 40_000 < seconds_for(5_000) / 5_000


def test_an_engine_that_breaks_at_one_answer_answers_the_next_twenty(standing_in):
    chunk = 'data: {"choices":[{"index":0,"delta":{"content":"w"}}]}\n\n'
    fault = 'data: {"error":{"code":500,"message":"can\'t parse what was generated"}}\n\n'
    with standing_in(streams=[chunk] * 10 + [fault]) as server:
        for _ in range(20):
            told = events(ask(server, model="model", stream=True))
            assert len(told) == 11
            assert told[-1]["error"]["code"] == "engine_error"
            assert ask(server, model="model").status_code == 502


@pytest.mark.parametrize(
    ("fields", "param"),
    [({"temperature": 5}, "temperature"), ({"max_new_tokens": 0}, "max_new_tokens")],
)
def test_an_older_request_is_refused_in_its_own_words(server, fields, param):
    reply = ask(server, "/generate/stream", messages=QUESTION, **fields)
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == param


def test_a_body_that_is_not_said_to_be_json_is_told_so(server):
    reply = httpx.post(f"{server.url}/v1/chat/completions", content=b'{"messages": []}')
    assert reply.status_code == 400
    assert "application/json" in reply.json()["error"]["next_step"]


STREAMS = [
    ("/v1/chat/completions", {"messages": QUESTION}),
    ("/v1/completions", {"prompt": "Once", "max_tokens": 9}),
    ("/v1/responses", {"input": CAPITAL}),
    ("/v1/messages", {"messages": QUESTION, "max_tokens": 9}),
    ("/generate/stream", {"messages": QUESTION}),
]


@pytest.mark.parametrize(("path", "body"), STREAMS)
def test_no_proxy_gathers_a_streams_tokens(server, path, body):
    url = f"{server.url}{path}"
    headers = {"accept-encoding": "gzip, deflate, br"}
    with httpx.stream("POST", url, json=body | {"stream": True}, headers=headers) as reply:
        assert_is_streamed(reply)


@pytest.mark.parametrize("path", ["/v1/logs", "/v1/load/progress", "/v1/runs/{run}/events"])
def test_no_proxy_gathers_other_streams(server, path):
    run = httpx.post(f"{server.url}/v1/runs", json={"messages": QUESTION}).json()["id"]
    headers = {"accept": "text/event-stream", "accept-encoding": "gzip"}
    url = f"{server.url}{path.format(run=run)}"
    with httpx.stream("GET", url, headers=headers) as reply:
        assert_is_streamed(reply)


def assert_is_streamed(reply):
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in reply.headers


def test_json_comes_to_who_asked_for_no_stream(server):
    for path, body in STREAMS[:-1]:
        reply = ask(server, path, **body)
        assert reply.headers["content-type"] == "application/json"
        assert reply.json()["model"] == BUILTIN


def picture(url):
    return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]


def anthropic_picture(url):
    source = {"type": "url", "url": url}
    return [{"role": "user", "content": [{"type": "image", "source": source}]}]


def response_picture(url):
    return [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]


TAKE_PICTURES = [
    ("/v1/chat/completions", lambda url: {"messages": picture(url)}),
    ("/v1/chat/completions/input_tokens", lambda url: {"messages": picture(url)}),
    ("/v1/apply-template", lambda url: {"messages": picture(url)}),
    ("/v1/runs", lambda url: {"messages": picture(url)}),
    ("/v1/messages", lambda url: {"messages": anthropic_picture(url), "max_tokens": 9}),
    ("/v1/messages/count_tokens", lambda url: {"messages": anthropic_picture(url)}),
    ("/v1/responses", lambda url: {"input": response_picture(url)}),
    ("/v1/responses/input_tokens", lambda url: {"input": response_picture(url)}),
    ("/generate/stream", lambda url: {"messages": QUESTION, "image_base64": url}),
]


@pytest.mark.parametrize(("path", "body"), TAKE_PICTURES)
@pytest.mark.parametrize("url", ["http://127.0.0.1:1/a.png", "file:///etc/hostname"])
def test_no_route_fetches_an_address_that_it_was_not_allowed_to(server, path, body, url):
    reply = ask(server, path, **body(url))
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["code"] == "remote_media_refused"
    assert "ELOQUIO_ALLOW_REMOTE_MEDIA" in error["next_step"]


@pytest.mark.parametrize(("path", "body"), TAKE_PICTURES)
def test_a_picture_for_a_model_that_reads_text_is_refused(server, path, body):
    pixel = (
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"
        "DwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    reply = ask(server, path, **body(pixel))
    if path == "/v1/runs":
        run = reply.json()["id"]
        url = f"{server.url}/v1/runs/{run}/events"
        assert events(httpx.get(url))[-1]["error"]["code"] == "model_cannot_see"
    else:
        assert reply.status_code == 400
        assert reply.json()["error"]["code"] == "model_cannot_see"


def test_no_body_tells_where_files_are(server):
    paths = (
        "/v1/models",
        "/v1/status",
        "/v1/system",
        "/v1/requests",
        "/v1/runs",
        "/v1/settings",
        "/v1/lora-adapters",
        "/metrics",
        f"/v1/models/{BUILTIN}",
        "/v1/models/nope",
        "/v1/x",
    )
    for path in paths:
        assert str(server.home) not in httpx.get(f"{server.url}{path}").text, path
    logs = httpx.get(f"{server.url}/v1/logs?follow=false&tail=500").text
    assert str(server.home) not in logs
