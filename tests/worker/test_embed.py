"""Vectors for texts, beside sentence-transformers' own for the same."""

import base64
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from eloquio.worker.embed import Embedder
from eloquio.worker.failures import LoadFailed, PromptTooLong, RequestFailed
from eloquio.worker_plan import WorkerPlan
from fixtures import tiny_sentences, worker_folders

pytestmark = pytest.mark.anyio

TEXTS = ["the fox runs", "paris is the capital of france", "a dog"]


@pytest.fixture(scope="module")
def folder() -> Path:
    return worker_folders.tiny_sentences()


@pytest.fixture(scope="module")
def embedder(folder: Path) -> Embedder:
    return Embedder(plan_of(folder))


def plan_of(folder: Path) -> WorkerPlan:
    return WorkerPlan(model="tiny", model_path=str(folder), kind="embedding", device="cpu")


async def test_the_vectors_are_those_of_sentence_transformers(
    embedder: Embedder, folder: Path
) -> None:
    told = await embedder.embed({"input": TEXTS}, "tiny")
    own = SentenceTransformer(str(folder), device="cpu").encode(TEXTS, convert_to_tensor=True)
    vectors = torch.tensor([each["embedding"] for each in told["data"]])
    torch.testing.assert_close(vectors, own)
    assert [each["index"] for each in told["data"]] == [0, 1, 2]
    # Each with the two tokens that begin and end a text.
    assert told["usage"] == {"prompt_tokens": 3 + 6 + 2 + 6, "total_tokens": 17}


async def test_a_text_alone_has_the_vector_that_it_has_among_others(embedder: Embedder) -> None:
    [alone] = (await embedder.embed({"input": TEXTS[1]}, "tiny"))["data"]
    among = (await embedder.embed({"input": TEXTS}, "tiny"))["data"][1]
    assert alone["embedding"] == pytest.approx(among["embedding"], abs=1e-5)


async def test_base64_holds_the_same_numbers(embedder: Embedder) -> None:
    fields = {"input": TEXTS[0]}
    [plain] = (await embedder.embed(fields, "tiny"))["data"]
    [packed] = (await embedder.embed(fields | {"encoding_format": "base64"}, "tiny"))["data"]
    numbers = np.frombuffer(base64.b64decode(packed["embedding"]), "<f4")
    assert numbers.tolist() == plain["embedding"]


async def test_a_text_that_is_too_long_is_refused_with_both_numbers(embedder: Embedder) -> None:
    with pytest.raises(PromptTooLong) as refused:
        await embedder.embed({"input": ["a dog", "fox " * 40]}, "tiny")
    assert refused.value.param == "input"
    error = refused.value.body()["error"]
    assert (error["n_prompt_tokens"], error["n_ctx"]) == (42, tiny_sentences.CONTEXT)


@pytest.mark.parametrize("given", [None, 3, [1, 2], [["a"]]])
async def test_what_is_no_text_is_refused_by_its_name(embedder: Embedder, given: object) -> None:
    with pytest.raises(RequestFailed) as refused:
        await embedder.embed({"input": given}, "tiny")
    assert refused.value.param == "input"


def test_a_folder_that_is_broken_says_what_is_wrong(folder: Path, tmp_path: Path) -> None:
    for file in folder.rglob("*"):
        target = tmp_path / file.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.is_file():
            target.write_bytes(
                file.read_bytes()[:100] if "safetensors" in file.name else file.read_bytes()
            )
    with pytest.raises(LoadFailed):
        Embedder(plan_of(tmp_path))
