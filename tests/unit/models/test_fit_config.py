"""How much memory a worker is expected to hold."""

from dataclasses import replace

import pytest

from eloquio.models import fit_config
from eloquio.models.entry import SafetensorsFolder
from eloquio.models.model_config import model_config
from eloquio.models.safetensors_header import Weights
from eloquio.worker_plan import cache_tokens
from fixtures.safetensors_files import GEMMA_VISION, LLAMA, WHISPER

BF16 = Weights(2_000_000, 1_000_000, {"BF16": 1_000_000}, matrix_parameters=800_000)


def folder(config=LLAMA, weights=BF16, kind="text"):
    return SafetensorsFolder(model_config(config), weights, kind)


def plan(model, context=2048, slots=8, device="cpu", adapters=0, in_4bit=False):
    return fit_config.plan(model, adapters, context, slots, device, in_4bit=in_4bit)


def test_all_requests_share_a_cache_of_one_whole_context_and_a_part_for_each_other():
    assert cache_tokens(2048, 8) == 8 * 2048
    assert cache_tokens(32_768, 8) == 32_768 + 7 * 4096
    assert cache_tokens(32_768, 1) == 32_768


def test_the_cache_is_that_of_its_tokens_in_all_layers():
    a_token = 2 * 2 * (16 + 16) * 2
    assert plan(folder()).kv_bytes == 8 * 2048 * a_token
    in_float32 = replace(BF16, parameters_by_dtype={"F32": 1_000_000})
    assert plan(folder(weights=in_float32)).kv_bytes == 2 * 8 * 2048 * a_token


def test_a_layer_with_a_window_holds_that_of_each_request():
    a_token_of_a_layer = 1 * (32 + 32) * 2
    held = plan(folder(GEMMA_VISION, kind="vision"), context=32_768)
    windowed = 5 * 8 * (512 + 128)
    assert held.kv_bytes == (cache_tokens(32_768, 8) + windowed) * a_token_of_a_layer


def test_what_only_reads_keeps_nothing_and_what_hears_attends_to_half_a_minute():
    assert plan(folder(kind="embedding")).kv_bytes == 0
    held = plan(folder(WHISPER, kind="transcription"), context=448, slots=1)
    assert held.kv_bytes == (448 + 1500) * 2 * 4 * (16 + 16) * 2


def test_4_bits_are_those_of_the_matrices():
    whole, quantized = plan(folder()), plan(folder(), in_4bit=True)
    assert whole.weights_bytes == 2_000_000
    assert quantized.weights_bytes == 2 * 200_000 + 800_000 * 9 // 16


def test_adapters_come_on_top_and_pickle_is_counted_by_its_files():
    assert plan(folder(), adapters=500).weights_bytes == 2_000_500
    assert plan(folder(weights=Weights(777)), in_4bit=True).weights_bytes == 777


@pytest.mark.parametrize("config", [{}, {"num_hidden_layers": 3}, {"vocab_size": 5}])
def test_a_config_that_tells_little_breaks_nothing(config):
    assert plan(folder(config)).total_bytes > 0
