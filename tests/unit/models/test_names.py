"""What a file's name says."""

from pathlib import Path

import pytest

from eloquio.models.byte_source import shown_name
from eloquio.models.names import is_repository, quant_in, shard_of, stem_of, without_quant


@pytest.mark.parametrize(
    ("stem", "quant", "rest"),
    [
        ("SmolLM2-135M-Instruct.Q4_1", "Q4_1", "SmolLM2-135M-Instruct"),
        ("Qwen3-30B-A3B-UD-Q4_K_XL", "UD-Q4_K_XL", "Qwen3-30B-A3B"),
        ("gemma-3-4b-it-q4_0", "Q4_0", "gemma-3-4b-it"),
        ("m-IQ2_XXS", "IQ2_XXS", "m"),
        ("m.i1-IQ3_M", "IQ3_M", "m.i1"),
        ("m_bf16", "BF16", "m"),
        ("m-fp16", "FP16", "m"),
        ("gpt-oss-20b-MXFP4", "MXFP4", "gpt-oss-20b"),
        ("m-TQ1_0", "TQ1_0", "m"),
        ("Q4_K_M", "Q4_K_M", "Q4_K_M"),
        ("from-F16-to-Q8_0", "Q8_0", "from--to"),
        ("qwen3-8b", None, "qwen3-8b"),
        ("FAQ4_0", None, "FAQ4_0"),
    ],
)
def test_the_quant_is_read_from_a_name(stem: str, quant: str | None, rest: str) -> None:
    assert quant_in(stem) == quant
    assert without_quant(stem) == rest


def test_a_shard_knows_its_siblings() -> None:
    shard = shard_of(Path("big-Q4_0-00002-of-00003.gguf"))

    assert shard is not None
    assert (shard.stem, shard.number, shard.total) == ("big-Q4_0", 2, 3)
    assert shard.sibling_name(1) == "big-Q4_0-00001-of-00003.gguf"
    assert stem_of(Path("big-Q4_0-00002-of-00003.gguf")) == "big-Q4_0"


@pytest.mark.parametrize(
    "name", ["a.gguf", "a-00000-of-00003.gguf", "a-00004-of-00003.gguf", "a-00001-of-99999.gguf"]
)
def test_an_impossible_number_makes_no_shard(name: str) -> None:
    assert shard_of(Path(name)) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("org/repo", True),
        ("org/repo-1.5_x", True),
        ("org", False),
        ("org/repo/more", False),
        ("../repo", False),
        ("org/..", False),
        ("a b/c", False),
        ("", False),
    ],
)
def test_a_repository_has_an_owner_and_a_name(text: str, answer: bool) -> None:
    assert is_repository(text) is answer


def test_a_shown_name_is_short_and_printable() -> None:
    assert shown_name("x" * 300) == "x" * 60 + "…" + "x" * 59
    assert shown_name("a\nb\x1b\ud800\u202e") == "a�b���"
    assert shown_name("日本語　👩‍💻") == "日本語　👩‍💻"
