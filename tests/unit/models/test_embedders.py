"""Models that read and don't write: what they are loaded with, and what that holds in memory."""

from pathlib import Path
from typing import Any

import pytest

from eloquio.models import embedders, fit
from eloquio.models.embedders import Pooling
from eloquio.models.gguf import GgufHeader, read_header
from fixtures.gguf_files import write_model

MIB = 1 << 20


def header_of(tmp_path: Path, architecture: str, **metadata: Any) -> GgufHeader:
    values = {f"{architecture}.{key}": value for key, value in metadata.items()}
    path = write_model(tmp_path / "m.gguf", architecture=architecture, metadata=values)
    return read_header(path)


@pytest.mark.parametrize(
    ("architecture", "pooling", "task", "is_whole"),
    [
        ("bert", Pooling.MEAN, "embedding", True),
        ("bert", Pooling.LAST, "embedding", True),
        ("bert", Pooling.RANK, "rerank", True),
        ("qwen3", Pooling.LAST, "embedding", False),
        ("qwen3", Pooling.MEAN, "embedding", True),
        ("qwen3", Pooling.RANK, "rerank", True),
        ("qwen3", Pooling.NONE, "chat", False),
    ],
)
def test_only_a_decoders_last_token_can_be_had_in_several_batches(
    tmp_path: Path, architecture: str, pooling: Pooling, task: Any, is_whole: bool
) -> None:
    header = header_of(tmp_path, architecture, pooling_type=pooling)

    assert embedders.reads_whole(header, task) == is_whole


def test_a_model_that_does_not_say_how_it_pools_takes_the_mean(tmp_path: Path) -> None:
    silent = header_of(tmp_path, "bert")

    assert embedders.own_pooling(silent, "embedding") == "mean"
    assert embedders.own_pooling(silent, "chat") is None
    told = header_of(tmp_path, "bert", pooling_type=int(Pooling.CLASS_TOKEN))
    assert embedders.own_pooling(told, "embedding") is None


@pytest.mark.parametrize(
    ("architecture", "task", "native", "own"),
    [
        ("bert", "embedding", 512, 512),
        ("modern-bert", "rerank", 32_768, 8192),
        ("qwen3", "embedding", 40_960, 2048),
        ("qwen3", "chat", 40_960, 40_960),
    ],
)
def test_a_reader_is_loaded_with_its_own_context_within_bounds(
    tmp_path: Path, architecture: str, task: Any, native: int, own: int
) -> None:
    assert embedders.own_context(header_of(tmp_path, architecture), task, native) == own


# As llama-server says it (build 10434, `-lv 4`), of one layer on the processor.
@pytest.mark.parametrize(("context", "mebibytes"), [(512, 14.5), (2048, 56.05), (8192, 304.2)])
def test_an_encoder_is_given_at_least_what_it_takes(
    tmp_path: Path, context: int, mebibytes: float
) -> None:
    header = header_of(
        tmp_path,
        "bert",
        block_count=1,
        embedding_length=1024,
        feed_forward_length=4096,
    )

    plan = fit.plan(header, 0, 0, context, 4, None, "cpu", task="embedding")

    assert plan.kv_bytes == 0
    assert mebibytes * MIB <= plan.compute_bytes < 2.5 * mebibytes * MIB


def test_a_decoder_that_reads_whole_holds_logits_for_every_token(tmp_path: Path) -> None:
    header = header_of(
        tmp_path,
        "llama",
        block_count=1,
        vocab_size=49_152,
        pooling_type=int(Pooling.MEAN),
        **{"attention.head_count_kv": 4},
    )
    header = GgufHeader(
        {key: value for key, value in header.metadata.items() if "tokens" not in key},
        header.tensors,
        header.weights_bytes,
        header.expected_file_bytes,
    )

    plan = fit.plan(header, 0, 0, 2048, 1, None, "cpu", task="embedding")

    assert 392 * MIB <= plan.compute_bytes < 420 * MIB


def test_each_slot_of_a_reader_has_a_cache_of_its_own(tmp_path: Path) -> None:
    header = header_of(tmp_path, "llama", pooling_type=int(Pooling.LAST))

    one = fit.plan(header, 0, 0, 2048, 1, None, "cpu", task="embedding")
    four = fit.plan(header, 0, 0, 2048, 4, None, "cpu", task="embedding")
    writer = fit.plan(header, 0, 0, 2048, 4, None, "cpu")

    assert four.kv_bytes == 4 * one.kv_bytes == 4 * writer.kv_bytes
