"""What was asked for and does nothing is said; what nobody asked for isn't mentioned."""

import pytest

from eloquio.models.advice import without_effect
from eloquio.models.schema import LoadRequest


def advice(**fields):
    return without_effect(LoadRequest(model_path="m", **fields))


@pytest.mark.parametrize(
    "fields", [{}, {"load_in_4bit": True}, {"hf_token": ""}, {"is_lora": True}]
)
def test_a_plain_load_gets_no_advice(fields):
    assert advice(**fields) == []


def test_each_field_without_effect_is_named_and_no_token_is_repeated():
    code, token = advice(trust_remote_code=True, hf_token="hf_secret")

    assert "trust_remote_code" in code
    assert "hf_token" in token
    assert "hf_secret" not in token
