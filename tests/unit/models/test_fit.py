"""The memory plan against the numbers llama-server itself logs (build 10434, `-lv 4`)."""

import time
from pathlib import Path
from typing import Any, get_args

import pytest

from eloquio.engines.spec import CacheType
from eloquio.models.fit import plan, row_bytes
from eloquio.models.gguf import GgufHeader, read_header
from fixtures.gguf_files import write_model

MIB = 1 << 20

SMOLLM2: dict[str, Any] = {
    "architecture": "llama",
    "block_count": 30,
    "context_length": 8192,
    "metadata": {
        "llama.embedding_length": 576,
        "llama.feed_forward_length": 1536,
        "llama.attention.head_count": 9,
        "llama.attention.head_count_kv": 3,
        "llama.vocab_size": 49152,
        "tokenizer.ggml.tokens": None,
    },
}
TINY: dict[str, Any] = {
    "architecture": "llama",
    "block_count": 1,
    "context_length": 8192,
    "metadata": {
        "llama.attention.head_count_kv": 4,
        "llama.vocab_size": 49152,
        "tokenizer.ggml.tokens": None,
    },
}
WINDOWED: dict[str, Any] = {
    "architecture": "gemma3",
    "block_count": 8,
    "metadata": {
        "gemma3.attention.head_count": 2,
        "gemma3.attention.head_count_kv": 1,
        "gemma3.attention.key_length": 32,
        "gemma3.attention.value_length": 32,
        "gemma3.attention.sliding_window": 512,
    },
}
LATENT: dict[str, Any] = {
    "architecture": "deepseek2",
    "metadata": {
        "deepseek2.attention.head_count": 2,
        "deepseek2.attention.head_count_kv": 1,
        "deepseek2.attention.key_length": 96,
        "deepseek2.attention.value_length": 64,
        "deepseek2.attention.key_length_mla": 64,
        "deepseek2.attention.value_length_mla": 32,
    },
}
RECURRENT: dict[str, Any] = {
    "architecture": "mamba",
    "block_count": 3,
    "metadata": {
        "mamba.attention.head_count": 0,
        "mamba.attention.head_count_kv": None,
        "mamba.ssm.conv_kernel": 4,
        "mamba.ssm.inner_size": 128,
        "mamba.ssm.state_size": 16,
    },
}
HYBRID: dict[str, Any] = {
    "architecture": "lfm2",
    "block_count": 4,
    "metadata": {
        "lfm2.attention.head_count": 2,
        "lfm2.attention.head_count_kv": [0, 0, 2, 0],
        "lfm2.shortconv.l_cache": 3,
    },
}


def header_of(tmp_path: Path, model: dict[str, Any]) -> GgufHeader:
    return read_header(write_model(tmp_path / "model.gguf", **model))


def kv_bytes(
    header: GgufHeader, context_length: int, n_parallel: int, cache_type: CacheType | None = None
) -> int:
    return plan(header, 0, 0, context_length, n_parallel, cache_type, "cpu", 512).kv_bytes


@pytest.mark.parametrize(
    ("model", "context_length", "n_parallel", "cache_type", "mebibytes"),
    [
        (SMOLLM2, 8192, 4, None, 180.0),
        (SMOLLM2, 0, 4, "f16", 180.0),
        (SMOLLM2, 2048, 4, None, 45.0),
        (SMOLLM2, 32768, 1, None, 720.0),
        (SMOLLM2, 1000, 1, None, 22.5),
        (SMOLLM2, 8192, 4, "q8_0", 95.625),
        (TINY, 8192, 4, None, 2.0),
        (WINDOWED, 8192, 1, None, 1.0 + 0.875),
        (WINDOWED, 8192, 4, None, 1.0 + 2.1875),
        (LATENT, 8192, 4, None, 3.0),
    ],
)
def test_the_kv_cache_is_as_large_as_the_engine_says(
    tmp_path: Path,
    model: dict[str, Any],
    context_length: int,
    n_parallel: int,
    cache_type: CacheType | None,
    mebibytes: float,
) -> None:
    header = header_of(tmp_path, model)

    assert kv_bytes(header, context_length, n_parallel, cache_type) == mebibytes * MIB


@pytest.mark.parametrize(
    ("model", "n_parallel", "mebibytes"),
    [(RECURRENT, 1, 0.03), (RECURRENT, 4, 0.11), (HYBRID, 1, 2.0), (HYBRID, 4, 2.01)],
)
def test_recurrent_layers_remember_as_much_as_the_engine_says(
    tmp_path: Path, model: dict[str, Any], n_parallel: int, mebibytes: float
) -> None:
    header = header_of(tmp_path, model)

    assert round(kv_bytes(header, 8192, n_parallel) / MIB, 2) == mebibytes


@pytest.mark.parametrize(
    ("model", "context_length", "batch_tokens", "n_parallel", "mebibytes", "tolerance"),
    [
        # The compute buffer and the output buffer, which is 0.19 MiB a slot.
        (SMOLLM2, 2048, 512, 4, 15.51 + 0.75, 0.1),
        (SMOLLM2, 8192, 512, 4, 21.51 + 0.75, 0.1),
        (SMOLLM2, 32768, 512, 1, 45.51 + 0.19, 0.1),
        (SMOLLM2, 8192, 256, 4, 10.76 + 0.75, 0.1),
        (SMOLLM2, 8192, 1024, 4, 43.02 + 0.75, 0.1),
        (TINY, 2048, 512, 4, 2.76 + 0.75, 0.5),
        (TINY, 32768, 512, 1, 32.76 + 0.19, 0.5),
    ],
)
def test_the_compute_buffers_are_near_what_the_engine_says(
    tmp_path: Path,
    model: dict[str, Any],
    context_length: int,
    batch_tokens: int,
    n_parallel: int,
    mebibytes: float,
    tolerance: float,
) -> None:
    header = header_of(tmp_path, model)

    planned = plan(header, 0, 0, context_length, n_parallel, None, "cpu", batch_tokens)

    assert planned.compute_bytes / MIB == pytest.approx(mebibytes, abs=tolerance)


@pytest.mark.parametrize(("device", "batch_tokens"), [("cpu", 64), ("NVIDIA H200", 512)])
def test_a_plan_counts_with_the_batch_of_its_device(
    tmp_path: Path, device: str, batch_tokens: int
) -> None:
    header = header_of(tmp_path, SMOLLM2)

    assert plan(header, 0, 0, 8192, 4, None, device) == plan(
        header, 0, 0, 8192, 4, None, device, batch_tokens
    )


def test_a_header_that_claims_ten_thousand_layers_is_planned_at_once(tmp_path: Path) -> None:
    windows = {"gemma3.attention.sliding_window": 512, "gemma3.attention.head_count_kv": [2, 1]}
    header = header_of(
        tmp_path, {"architecture": "gemma3", "block_count": 10_000, "metadata": windows}
    )
    started = time.process_time()

    plan(header, 0, 0, 8192, 4, None, "cpu")

    assert time.process_time() - started < 0.05


def test_the_parts_and_the_device_are_passed_on_and_added(tmp_path: Path) -> None:
    planned = plan(header_of(tmp_path, SMOLLM2), 1000, 200, 512, 1, None, "GPU 0")

    assert (planned.weights_bytes, planned.projector_bytes, planned.device) == (1000, 200, "GPU 0")
    assert planned.total_bytes == 1200 + planned.kv_bytes + planned.compute_bytes


@pytest.mark.parametrize("cache_type", get_args(CacheType))
def test_every_cache_type_has_a_size(cache_type: CacheType) -> None:
    assert 0 < row_bytes(cache_type, 64) <= 256


def test_the_pattern_of_windows_may_stand_in_the_header(tmp_path: Path) -> None:
    def with_pattern(pattern: object) -> int:
        metadata = {
            "mimo2.attention.sliding_window": 256,
            "mimo2.attention.sliding_window_pattern": pattern,
        }
        model = {"architecture": "mimo2", "block_count": 4, "metadata": metadata}
        return kv_bytes(header_of(tmp_path, model), 8192, 1)

    row = 2 * 2 * 16 * 2  # key and value, two heads of 16 values of two bytes
    assert with_pattern([True, False, True, True]) == row * (8192 + 3 * 768)
    assert with_pattern(2) == row * 2 * (8192 + 768)
    assert with_pattern(None) == row * 4 * 8192


def test_windowed_layers_may_have_heads_of_their_own_length(tmp_path: Path) -> None:
    metadata = {
        "gemma4.attention.sliding_window": 256,
        "gemma4.attention.sliding_window_pattern": [True, False],
        "gemma4.attention.key_length": 64,
        "gemma4.attention.value_length": 64,
        "gemma4.attention.key_length_swa": 32,
        "gemma4.attention.value_length_swa": 32,
    }
    header = header_of(tmp_path, {"architecture": "gemma4", "metadata": metadata})

    assert kv_bytes(header, 8192, 1) == 2 * 2 * 2 * (64 * 8192 + 32 * 768)


def test_layers_that_share_a_cache_or_only_predict_need_none(tmp_path: Path) -> None:
    def with_key(key: str) -> int:
        return kv_bytes(
            header_of(tmp_path, {"block_count": 4, "metadata": {f"llama.{key}": 1}}), 256, 1
        )

    whole = kv_bytes(header_of(tmp_path, {"block_count": 4}), 256, 1)
    assert with_key("attention.shared_kv_layers") == whole * 3 // 4
    assert with_key("nextn_predict_layers") == whole * 3 // 4


def test_in_a_hybrid_with_an_interval_only_every_fourth_layer_has_a_cache(tmp_path: Path) -> None:
    metadata = {"qwen3next.full_attention_interval": 4, "qwen3next.ssm.inner_size": 128}
    model = {"architecture": "qwen3next", "block_count": 8, "metadata": metadata}

    assert kv_bytes(header_of(tmp_path, model), 256, 1) == 2 * 256 * (2 * 2 * 16 * 2)


def test_an_encoder_keeps_no_cache(tmp_path: Path) -> None:
    metadata = {"bert.attention.causal": False}

    assert (
        kv_bytes(header_of(tmp_path, {"architecture": "bert", "metadata": metadata}), 512, 4) == 0
    )


@pytest.mark.parametrize(
    "metadata",
    [
        {"llama.block_count": 2**32 - 1},
        {"llama.attention.head_count": 0, "llama.attention.head_count_kv": None},
        {"llama.attention.head_count_kv": [2]},
        {"llama.embedding_length": None, "llama.block_count": None},
        {"llama.attention.sliding_window": 2**32 - 1},
    ],
)
def test_odd_headers_are_planned_without_a_fault(
    tmp_path: Path, metadata: dict[str, object]
) -> None:
    header = header_of(tmp_path, {"metadata": metadata})

    assert plan(header, 1, 0, 4096, 4, "q8_0", "cpu").total_bytes >= 1
