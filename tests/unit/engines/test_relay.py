import json

import pytest

from eloquio.engines.relay import engine_error


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (400, {"error": {"code": 400, "message": "bad n"}}, "engine_rejected_request", "bad n"),
        (500, {"error": {"code": 500, "message": "odd"}}, "engine_error", "odd"),
        (503, {"error": {"code": 503, "message": "Loading"}}, "engine_unavailable", "isn't ready"),
        (501, {"error": {"code": 501, "message": "no embeddings"}}, "not_implemented", "no emb"),
        (500, {"error": "no object"}, "engine_error", "500"),
        (502, "<html>", "engine_error", "502"),
    ],
)
def test_an_engines_error_becomes_one_of_ours_with_its_words(status, body, code, words):
    error = engine_error(status, json.dumps(body).encode())
    assert error.code == code
    assert words in error.message


def test_a_prompt_that_is_too_long_is_told_with_both_numbers():
    refusal = {"type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 8, "message": ""}
    error = engine_error(400, json.dumps({"error": refusal}).encode())
    assert error.code == "context_length_exceeded"
    assert "9 tokens" in error.message
    assert "8" in error.message
