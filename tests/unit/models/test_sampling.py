"""Which sampling is recommended for a model."""

from pathlib import Path

import pytest

from eloquio.engines.spec import Sampling
from eloquio.models.gguf import read_header
from eloquio.models.sampling import recommended
from fixtures.gguf_files import write_model

QWEN3 = Sampling(0.6, 0.95, 20, 0.0, 1.0, None)
QWEN3_5 = Sampling(0.7, 0.8, 20, 0.0, 1.0, 1.5)
LLAMA3_2 = Sampling(1.5, 0.95, 0, 0.1, 1.0, None)
GEMMA3 = Sampling(1.0, 0.95, 64, 0.0, 1.0, None)
SMOLLM = Sampling(0.7, 0.95, 0, 0.01, 1.0, None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("unsloth/Qwen3-8B-GGUF:Q4_K_M", QWEN3),
        ("Qwen3 8B", QWEN3),
        ("qwen3_8b", QWEN3),
        ("unsloth/Qwen3.5-9B-GGUF:Q4_K_M", QWEN3_5),
        ("Qwen3-Coder-30B-A3B", Sampling(0.7, 0.8, 20, 0.0, 1.0, None)),
        ("Llama-3.2-1B-Instruct", LLAMA3_2),
        ("Meta Llama 3.2", LLAMA3_2),
        ("google_gemma-3-4b-it", GEMMA3),
        ("medgemma-27b", GEMMA3),
        ("builtin/smollm2-135m-instruct", SMOLLM),
        ("GLM-4.6-Air", Sampling(1.0, 0.95, 0, 0.01, 1.0, None)),
        ("gpt-oss-20b", Sampling(1.0, 1.0, 0, 0.01, 1.0, None)),
        ("gemma-4-12b", Sampling(1.0, 0.95, 64, 0.0, 1.0, 0.0)),
        ("granite-4.0-h-micro", Sampling(0.0, 1.0, 0, 0.0 + 0.01, 1.0, None)),
        ("gemma-27b", Sampling()),
        ("qwen30-8b", Sampling()),
        ("reseeded-7b", Sampling()),
        ("a model of my own", Sampling()),
    ],
)
def test_a_family_is_known_by_the_longest_name_that_fits(name: str, expected: Sampling) -> None:
    assert recommended([name], None) == expected


def test_no_limit_is_written_as_the_engine_writes_it() -> None:
    assert recommended(["mistral-small"], None).top_k == 0


def test_the_most_telling_of_several_names_decides() -> None:
    assert recommended(["my qwen3 merge", "qwen3.5-9b"], None) == QWEN3_5


def test_the_names_in_the_header_count_too(tmp_path: Path) -> None:
    by_name = read_header(write_model(tmp_path / "a.gguf", name="Qwen3 8B"))
    by_base = read_header(
        write_model(tmp_path / "b.gguf", metadata={"general.basename": "smollm2"})
    )

    assert recommended(["downloaded"], by_name) == QWEN3
    assert recommended(["downloaded"], by_base) == SMOLLM


def test_what_the_header_recommends_wins_value_by_value(tmp_path: Path) -> None:
    metadata = {
        "general.sampling.temp": 0.3,
        "general.sampling.top_k": -1 & 0x7FFFFFFF,
        "general.sampling.penalty_repeat": 1.1,
    }
    header = read_header(write_model(tmp_path / "m.gguf", name="Qwen3 8B", metadata=metadata))

    assert recommended([], header) == Sampling(0.3, 0.95, 0x7FFFFFFF, 0.0, 1.1, None)


def test_without_names_and_header_nothing_is_recommended() -> None:
    assert recommended([], None) == Sampling()
