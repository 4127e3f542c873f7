"""Embeddings by a model that is made for them."""

import base64
import math
import struct

import openai

from conformance.case import Cases
from conformance.target import Target, refused, valid

cases = Cases("embeddings", "embeddings")
case = cases.case

TEXTS = ["the cat", "paris is the capital of france", "the moon"]


def embed(target: Target, text: object, **fields: object) -> openai.types.CreateEmbeddingResponse:
    return target.openai.embeddings.create(model=target.models.embedding, input=text, **fields)


@case()
def a_text_becomes_one_vector(target: Target) -> None:
    answer = valid(embed(target, TEXTS[0], encoding_format="float"))
    [item] = answer.data
    assert (answer.object, item.object, item.index) == ("list", "embedding", 0)
    assert answer.model == target.models.embedding
    assert all(math.isfinite(value) for value in item.embedding)


@case()
def both_encodings_hold_the_same_numbers(target: Target) -> None:
    plain = embed(target, TEXTS[0], encoding_format="float").data[0].embedding
    # By itself the client asks for base64, and decodes it.
    packed = embed(target, TEXTS[0]).data[0].embedding
    assert all(math.isclose(a, b, abs_tol=1e-5) for a, b in zip(plain, packed, strict=True))
    body = {"model": target.models.embedding, "input": TEXTS[0], "encoding_format": "base64"}
    raw = base64.b64decode(target.post("/embeddings", body).json()["data"][0]["embedding"])
    unpacked = struct.unpack(f"<{len(plain)}f", raw)
    assert all(math.isclose(a, b, abs_tol=1e-5) for a, b in zip(plain, unpacked, strict=True))


@case()
def many_texts_keep_their_order(target: Target) -> None:
    together = embed(target, TEXTS)
    assert [item.index for item in together.data] == [0, 1, 2]
    for text, item in zip(TEXTS, together.data, strict=True):
        alone = embed(target, text).data[0].embedding
        close = zip(alone, item.embedding, strict=True)
        assert all(math.isclose(a, b, abs_tol=1e-3) for a, b in close)


@case()
def different_texts_have_different_vectors(target: Target) -> None:
    vectors = {tuple(item.embedding) for item in embed(target, TEXTS).data}
    assert len(vectors) == len(TEXTS)


@case()
def what_was_read_is_counted(target: Target) -> None:
    one, all_ = embed(target, TEXTS[0]).usage, embed(target, TEXTS).usage
    assert 0 < one.prompt_tokens == one.total_tokens
    assert all_.prompt_tokens > one.prompt_tokens


@case()
def a_vector_cannot_be_shortened(target: Target) -> None:
    error = refused(openai.APIStatusError, lambda: embed(target, TEXTS[0], dimensions=3))
    assert (error.status_code, error.param) == (501, "dimensions")


@case()
def an_unknown_encoding_is_refused(target: Target) -> None:
    error = refused(openai.BadRequestError, lambda: embed(target, "x", encoding_format="hex"))
    assert error.param == "encoding_format"


@case()
def nothing_is_not_embedded(target: Target) -> None:
    for nothing in ("", [], [""]):
        error = refused(openai.BadRequestError, lambda nothing=nothing: embed(target, nothing))
        assert error.param == "input"


@case()
def a_chat_model_does_not_embed(target: Target) -> None:
    error = refused(
        openai.BadRequestError,
        lambda: target.openai.embeddings.create(model=target.model, input="x"),
    )
    assert error.param == "model"


@case()
def an_embedding_model_does_not_chat(target: Target) -> None:
    error = refused(openai.BadRequestError, lambda: target.chat(model=target.models.embedding))
    assert error.param == "model"
