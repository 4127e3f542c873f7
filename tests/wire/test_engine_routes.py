"""Embeddings, reranking and the small questions, through a real server to real engines."""

import json
from http.client import HTTPConnection

import gguf
import httpx2 as httpx
import numpy as np
import openai
import psutil
import pytest
from openai import OpenAI

from fixtures.running import place, serving, until
from fixtures.tiny_adapter import write_tiny_adapter
from fixtures.tiny_embedding import (
    CONTEXT_LENGTH,
    EMBEDDING_LENGTH,
    write_tiny_embedding_model,
    write_tiny_reranker,
)
from fixtures.tiny_engine import write_tiny_model

TEXTS = [f"the {animal} number {n} is of paris" for animal in ("cat", "dog") for n in range(10)]
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory, real_model, tiny_model):
    home = tmp_path_factory.mktemp("home")
    shelf = home / "shelf"
    place(tiny_model, shelf / "tiny.gguf")
    write_tiny_embedding_model(shelf / "embedder.gguf")
    write_tiny_reranker(shelf / "reranker.gguf")
    write_tiny_model(real_model, shelf / "decoder.gguf", gguf.PoolingType.LAST)
    write_tiny_adapter(shelf / "adapter.gguf")
    flags = ("--model-dir", str(shelf), "--no-load-on-start")
    with serving(home, *flags, HF_HUB_OFFLINE="1") as running:
        yield running


@pytest.fixture
def client(server):
    with OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def ask(server, path, **body):
    return httpx.post(f"{server.url}/v1{path}", json=body, timeout=60)


def error_of(reply, status=400):
    assert reply.status_code == status, reply.text
    return reply.json()["error"]


def engine_of(server, model):
    engines = httpx.get(f"{server.url}/v1/status").json()["engines"]
    return next(engine for engine in engines if engine["model"] == model)


def slots_at_work(engine):
    """By what the engine itself says."""
    arguments = engine.cmdline()
    socket = arguments[arguments.index("--host") + 1]
    with httpx.Client(transport=httpx.HTTPTransport(uds=socket)) as client:
        slots = client.get("http://engine/slots", timeout=60).json()
    return sum(slot["is_processing"] for slot in slots)


# Embeddings --------------------------------------------------------------------------------------


def test_the_official_client_gets_the_same_numbers_in_both_encodings(client):
    # By itself it asks for base64, and decodes it.
    packed = client.embeddings.create(model="embedder", input=TEXTS[:3])
    plain = client.embeddings.create(model="embedder", input=TEXTS[:3], encoding_format="float")
    assert packed.model == plain.model == "embedder"
    assert packed.usage == plain.usage
    assert packed.usage.prompt_tokens == packed.usage.total_tokens > 20
    for one, other in zip(packed.data, plain.data, strict=True):
        assert len(one.embedding) == EMBEDDING_LENGTH
        assert np.allclose(one.embedding, other.embedding, atol=1e-6)


def test_a_long_list_comes_in_the_order_that_it_was_sent(client):
    together = client.embeddings.create(model="embedder", input=TEXTS)
    assert [item.index for item in together.data] == list(range(len(TEXTS)))
    for text, item in zip(TEXTS, together.data, strict=True):
        [alone] = client.embeddings.create(model="embedder", input=text).data
        assert np.allclose(item.embedding, alone.embedding, atol=1e-4)
    different = {tuple(np.round(item.embedding, 3)) for item in together.data}
    assert len(different) == len(TEXTS)


def test_tokens_are_as_good_as_the_text_that_they_stand_for(server, client):
    texts = ["the cat", "paris is the capital of france"]
    tokens = [
        ask(server, "/tokenize", model="embedder", content=text, add_special=True).json()["tokens"]
        for text in texts
    ]
    by_text = client.embeddings.create(model="embedder", input=texts).data
    by_tokens = client.embeddings.create(model="embedder", input=tokens).data
    [one] = client.embeddings.create(model="embedder", input=tokens[0]).data
    for text, token in zip(by_text, [*by_tokens], strict=True):
        assert np.allclose(text.embedding, token.embedding, atol=1e-4)
    assert np.allclose(one.embedding, by_text[0].embedding, atol=1e-4)


def test_without_a_name_the_embedding_model_is_meant_though_another_was_loaded_later(server):
    ask(server, "/embeddings", model="embedder", input="x")
    assert ask(server, "/load", model_path="tiny").status_code == 200
    reply = ask(server, "/embeddings", input="the cat")
    assert reply.json()["model"] == "embedder"
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-request-id"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({}, "input"),
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": [[]]}, "input"),
        ({"input": ["the cat", ""]}, "input"),
        ({"input": ["the cat", [5]]}, "input"),
        ({"input": [5, True]}, "input"),
        ({"input": [-1]}, "input"),
        ({"input": {"text": "the cat"}}, "input"),
        ({"input": None}, "input"),
        ({"input": ["x"] * 2049}, "input"),
        ({"input": "x", "encoding_format": "hex"}, "encoding_format"),
        ({"input": "x", "dimensions": 0}, "dimensions"),
        ({"input": "x", "input_type": "query"}, "input_type"),
    ],
)
def test_a_wrong_body_is_refused_by_the_field(server, fields, param):
    reply = ask(server, "/embeddings", model="embedder", **fields)
    assert error_of(reply)["param"] == param
    assert reply.json()["error"]["code"] == "invalid_request"


def test_half_a_surrogate_pair_is_refused(server):
    body = b'{"model": "embedder", "input": "\\ud83d"}'
    headers = {"content-type": "application/json"}
    reply = httpx.post(f"{server.url}/v1/embeddings", content=body, headers=headers)
    assert error_of(reply)["param"] == "input"


def test_a_token_that_the_model_does_not_have_is_refused(server):
    error = error_of(ask(server, "/embeddings", model="embedder", input=[99_999]))
    assert error["code"] == "engine_rejected_request"


def test_only_the_models_own_dimensions_can_be_had(server, client):
    answer = client.embeddings.create(
        model="embedder", input="the cat", dimensions=EMBEDDING_LENGTH
    )
    assert len(answer.data[0].embedding) == EMBEDDING_LENGTH
    error = error_of(ask(server, "/embeddings", model="embedder", input="x", dimensions=8), 501)
    assert error["param"] == "dimensions"
    assert str(EMBEDDING_LENGTH) in error["message"]


def test_a_text_as_long_as_the_context_is_read_and_a_longer_one_is_refused(server):
    longest = ask(server, "/embeddings", model="embedder", input=[7] * CONTEXT_LENGTH)
    assert longest.json()["usage"]["prompt_tokens"] == CONTEXT_LENGTH
    error = error_of(ask(server, "/embeddings", model="embedder", input="cat " * 700))
    assert error["code"] == "context_length_exceeded"
    assert "702" in error["message"]
    assert str(CONTEXT_LENGTH) in error["message"]


def test_texts_that_are_read_at_the_same_time_take_no_room_from_one_another(server, client):
    assert ask(server, "/load", model_path="decoder", max_seq_length=512).status_code == 200
    # Each fills half of the context, which these slots would have to share if they could.
    texts = [f"{number} cats and dogs. " * 50 for number in range(8)]
    answer = client.embeddings.create(model="decoder", input=texts)
    assert len(answer.data) == len(texts)
    assert answer.usage.prompt_tokens > 8 * 250


def test_the_timeline_comes_in_the_body_where_it_is_asked_for(server):
    reply = httpx.post(
        f"{server.url}/v1/embeddings",
        json={"model": "embedder", "input": "the cat"},
        headers={"X-Trace-Level": "request"},
    )
    assert reply.json()["trace"]["request_id"] == reply.headers["x-request-id"]


def test_nothing_is_read_for_a_client_that_has_left(server):
    ask(server, "/embeddings", model="decoder", input="x")
    engine = psutil.Process(engine_of(server, "decoder")["pid"])
    # A minute's work and more.
    body = {"model": "decoder", "input": ["cats and dogs. " * 75] * 2000}
    leaving = HTTPConnection(server.url.removeprefix("http://"))
    headers = {"Content-Type": "application/json"}
    leaving.request("POST", "/v1/embeddings", json.dumps(body), headers)
    until(lambda: slots_at_work(engine) > 0, 60)
    leaving.close()
    until(lambda: engine_of(server, "decoder")["busy"] == 0, 60)
    # More than once: between two texts a slot is at rest for a moment.
    until(lambda: not any(slots_at_work(engine) for _ in range(10)), 60)


# Reranking ---------------------------------------------------------------------------------------


def test_the_most_relevant_document_comes_first(server):
    reply = ask(server, "/rerank", model="reranker", query="capital of france", documents=TEXTS)
    body = reply.json()
    scores = [result["relevance_score"] for result in body["results"]]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) > 10
    assert sorted(result["index"] for result in body["results"]) == list(range(len(TEXTS)))
    assert body["model"] == "reranker"
    assert body["usage"]["total_tokens"] > 200
    assert "document" not in body["results"][0]


def test_each_score_is_that_of_its_own_document(server):
    fields = {"model": "reranker", "query": "capital of france"}
    together = ask(server, "/rerank", **fields, documents=TEXTS, return_documents=True).json()
    for result in together["results"]:
        assert result["document"] == {"text": TEXTS[result["index"]]}
        [alone] = ask(server, "/rerank", **fields, documents=[result["document"]]).json()["results"]
        assert alone["relevance_score"] == pytest.approx(result["relevance_score"], abs=1e-3)


def test_only_as_many_as_are_asked_for_are_answered(server):
    fields = {"query": "capital of france", "documents": TEXTS}
    every = ask(server, "/rerank", **fields).json()["results"]
    best = ask(server, "/rerank", **fields, top_n=3).json()["results"]
    assert [result["index"] for result in best] == [result["index"] for result in every[:3]]
    assert len(ask(server, "/rerank", **fields, top_n=100).json()["results"]) == len(TEXTS)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"documents": ["x"]}, "query"),
        ({"query": "", "documents": ["x"]}, "query"),
        ({"query": "x"}, "documents"),
        ({"query": "x", "documents": []}, "documents"),
        ({"query": "x", "documents": ["x"], "top_n": 0}, "top_n"),
        ({"query": "x", "documents": ["x"], "rank_fields": ["title"]}, "rank_fields"),
    ],
)
def test_a_wrong_question_for_a_ranking_is_refused_by_the_field(server, fields, param):
    assert error_of(ask(server, "/rerank", model="reranker", **fields))["param"] == param


def test_a_document_that_is_too_long_is_refused_with_both_numbers(server):
    reply = ask(server, "/rerank", model="reranker", query="x", documents=["cat " * 700])
    error = error_of(reply)
    assert error["code"] == "context_length_exceeded"
    assert str(CONTEXT_LENGTH) in error["message"]


# What a model isn't made for ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "model", "fields", "code"),
    [
        ("/embeddings", "tiny", {"input": "x"}, "model_cannot_embed"),
        ("/embeddings", "reranker", {"input": "x"}, "model_cannot_embed"),
        ("/rerank", "tiny", {"query": "x", "documents": ["x"]}, "model_cannot_rerank"),
        ("/rerank", "embedder", {"query": "x", "documents": ["x"]}, "model_cannot_rerank"),
        ("/chat/completions", "embedder", {"messages": QUESTION}, "model_cannot_chat"),
        ("/chat/completions", "reranker", {"messages": QUESTION}, "model_cannot_chat"),
        ("/apply-template", "embedder", {"messages": QUESTION}, "model_cannot_chat"),
    ],
)
def test_a_model_is_not_asked_for_what_it_is_not_made_for(server, path, model, fields, code):
    error = error_of(ask(server, path, model=model, **fields))
    assert (error["code"], error["param"]) == (code, "model")
    assert error["next_step"]


def test_the_official_client_knows_the_refusal(client):
    with pytest.raises(openai.BadRequestError, match="not for embedding") as refusal:
        client.embeddings.create(model="tiny", input="x")
    assert refusal.value.code == "model_cannot_embed"
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="no-such-model", input="x")


def test_each_model_is_listed_with_its_task(server):
    cards = httpx.get(f"{server.url}/v1/models").json()["data"]
    tasks = {card["id"]: card["task"] for card in cards if card["status"] != "unusable"}
    wanted = {"tiny": "chat", "embedder": "embedding", "reranker": "rerank", "decoder": "embedding"}
    assert tasks == wanted
    loaded = ask(server, "/load", model_path="reranker").json()
    assert (loaded["task"], loaded["context_length"]) == ("rerank", CONTEXT_LENGTH)
    assert loaded["warnings"] == []


# The small questions -----------------------------------------------------------------------------


def test_a_text_is_its_tokens_and_they_are_the_text(server):
    text = "What is the capital of France?"
    tokens = ask(server, "/tokenize", model="tiny", content=text).json()["tokens"]
    assert len(tokens) == 7
    assert ask(server, "/detokenize", model="tiny", tokens=tokens).json() == {"content": text}
    pieces = ask(server, "/tokenize", model="tiny", content=text, with_pieces=True).json()["tokens"]
    assert [piece["id"] for piece in pieces] == tokens
    assert "".join(piece["piece"] for piece in pieces) == text


def test_a_control_tokens_name_is_that_token_unless_it_is_not_to_be(server):
    def tokens(**fields):
        return ask(server, "/tokenize", model="tiny", content="<|im_start|>", **fields).json()

    assert len(tokens()["tokens"]) == 1
    assert len(tokens(parse_special=False)["tokens"]) > 1


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/tokenize", {}, "content"),
        ("/tokenize", {"content": 5}, "content"),
        ("/detokenize", {}, "tokens"),
        ("/detokenize", {"tokens": "x"}, "tokens"),
        ("/detokenize", {"tokens": [-1]}, "tokens"),
        ("/detokenize", {"tokens": [10_000_000]}, "tokens"),
        ("/apply-template", {}, "messages"),
        ("/chat/completions/input_tokens", {"messages": []}, "messages"),
    ],
)
def test_a_wrong_small_question_is_refused_by_the_field(server, path, fields, param):
    assert error_of(ask(server, path, model="tiny", **fields))["param"].split(".")[0] == param


@pytest.mark.parametrize(
    ("path", "model", "fields"),
    [
        ("/embeddings", "embedder", {"input": "x"}),
        ("/rerank", "reranker", {"query": "x", "documents": ["x"]}),
        ("/tokenize", "tiny", {"content": "x"}),
        ("/detokenize", "tiny", {"tokens": [1]}),
        ("/apply-template", "tiny", {"messages": QUESTION}),
        ("/chat/completions/input_tokens", "tiny", {"messages": QUESTION}),
    ],
)
def test_whatever_is_asked_of_an_engine_is_cancelled_by_its_id(server, path, model, fields):
    body = fields | {"model": model, "cancel_id": f"of {path}"}
    # It overtakes the request that it is for.
    assert ask(server, "/cancel", cancel_id=body["cancel_id"]).json()["status"] == "expected"
    assert error_of(ask(server, path, **body), 499)["code"] == "request_cancelled"
    assert ask(server, path, **body).status_code == 200


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/tokenize", {"content": "\ud800"}, "content"),
        ("/embeddings", {"input": ["x", "\udfff"]}, "input"),
        ("/rerank", {"query": "x", "documents": ["\ud800"]}, "documents"),
        ("/apply-template", {"messages": [{"role": "user", "content": "\ud800"}]}, "messages"),
    ],
)
def test_half_a_character_is_refused_by_its_field(server, path, fields, param):
    # Escaped, as no client can send it otherwise.
    body = json.dumps({"model": "tiny"} | fields)
    headers = {"content-type": "application/json"}
    error = error_of(httpx.post(f"{server.url}/v1{path}", content=body, headers=headers))
    assert (error["code"], error["param"]) == ("invalid_request", param)
    assert "surrogate" in error["message"]


def test_a_text_of_megabytes_is_its_tokens_as_well(server):
    text = "the cat is a dog. " * 100_000
    tokens = ask(server, "/tokenize", model="tiny", content=text).json()["tokens"]
    assert ask(server, "/detokenize", model="tiny", tokens=tokens).json() == {"content": text}


def test_the_prompt_of_a_chat_is_shown_and_counted_as_the_engine_reads_it(server):
    prompt = ask(server, "/apply-template", model="tiny", messages=QUESTION).json()["prompt"]
    assert QUESTION[0]["content"] in prompt
    assert prompt.endswith("<|im_start|>assistant\n")
    fields = {"model": "tiny", "messages": QUESTION}
    counted = ask(server, "/chat/completions/input_tokens", **fields).json()
    chatted = ask(server, "/chat/completions", **fields, max_tokens=1).json()
    assert counted["object"] == "response.input_tokens"
    assert counted["input_tokens"] == chatted["usage"]["prompt_tokens"]


def test_small_questions_are_answered_while_the_model_is_busy(server):
    assert ask(server, "/load", model_path="tiny", n_parallel=1).status_code == 200
    # More than the connection holds: as long as nobody reads on, the answer doesn't end.
    body = {"model": "tiny", "messages": QUESTION, "stream": True}
    body |= {"logprobs": True, "top_logprobs": 20}
    with httpx.stream("POST", f"{server.url}/v1/chat/completions", json=body) as reply:
        pieces = reply.iter_bytes()
        next(pieces)
        assert ask(server, "/tokenize", model="tiny", content="the cat").status_code == 200
        assert engine_of(server, "tiny")["busy"] == 1


def test_an_adapter_is_named_without_its_folder_and_can_be_made_weaker(server):
    url = f"{server.url}/v1/lora-adapters"
    loaded = ask(
        server, "/load", model_path="tiny", lora_adapters=[f"{server.home}/shelf/adapter.gguf"]
    )
    assert loaded.status_code == 200, loaded.text
    listed = httpx.get(url, params={"model": "tiny"})
    assert [(a["id"], a["path"], a["scale"]) for a in listed.json()] == [(0, "adapter.gguf", 1.0)]
    assert str(server.home) not in listed.text
    weaker = httpx.post(url, params={"model": "tiny"}, json=[{"id": 0, "scale": 0.5}])
    assert weaker.json() == {"success": True}
    assert [adapter["scale"] for adapter in httpx.get(url).json()] == [0.5]
    unknown = httpx.post(url, params={"model": "tiny"}, json=[{"id": 7, "scale": 0.5}])
    assert error_of(unknown)["param"] == "id"
    assert error_of(httpx.post(url, json={"id": 0}))["code"] == "invalid_request"
