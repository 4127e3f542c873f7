"""Embeddings by the worker, through the whole server."""

import shutil

import httpx2 as httpx
import openai
import pytest
from openai import OpenAI

from fixtures import worker_folders
from fixtures.running import serving

TEXTS = ["the fox runs", "paris is the capital of france"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(worker_folders.tiny_sentences(), home / "shelf/sentences")
    with serving(home, "--model-dir", str(home / "shelf"), "--no-load-on-start") as running:
        body = {"model_path": "sentences"}
        loaded = httpx.post(f"{running.url}/v1/load", json=body, timeout=180)
        assert (loaded.status_code, loaded.json()["task"]) == (200, "embedding"), loaded.text
        yield running


@pytest.fixture
def client(server):
    with OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def test_texts_get_vectors_by_the_official_client_however_they_travel(client):
    # The client asks for base64 unless it is told otherwise.
    packed = client.embeddings.create(model="sentences", input=TEXTS)
    plain = client.embeddings.create(model="sentences", input=TEXTS, encoding_format="float")
    vectors = [each.embedding for each in plain.data]
    assert [each.embedding for each in packed.data] == vectors
    assert {len(vector) for vector in vectors} == {32}
    assert [sum(n * n for n in vector) for vector in vectors] == pytest.approx([1, 1], abs=1e-4)
    assert (plain.model, plain.usage.prompt_tokens) == ("sentences", 13)


def test_a_text_that_is_too_long_is_a_400_with_both_numbers(client):
    with pytest.raises(openai.BadRequestError, match=r"42.*32"):
        client.embeddings.create(model="sentences", input="fox " * 40)


def test_it_cannot_be_asked_to_chat(client):
    with pytest.raises(openai.BadRequestError, match="sentences"):
        client.chat.completions.create(
            model="sentences", messages=[{"role": "user", "content": "Hello"}]
        )
