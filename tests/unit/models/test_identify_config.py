"""What a config.json makes of a model, and what those are told that can't be run."""

import pytest

from eloquio.errors import ModelConfigInvalid, ModelKindUnsupported
from eloquio.models.identify_config import identify, is_known, task_of
from eloquio.models.model_config import Attention, model_config
from fixtures.safetensors_files import GEMMA_VISION, LLAMA, WHISPER

PROCESSOR = ["preprocessor_config.json"]


def kind_of(config, *names):
    return identify(model_config(config), names, "it")


def named(architecture, **fields):
    return {"architectures": [architecture], "vocab_size": 32, **fields}


@pytest.mark.parametrize(
    ("config", "names", "kind", "task"),
    [
        (LLAMA, [], "text", "chat"),
        (named("Qwen3MoeForCausalLM"), [], "text", "chat"),
        (named("Gemma3ForCausalLM"), [], "text", "chat"),
        (named("NobodyKnowsItForCausalLM"), [], "text", "chat"),
        (GEMMA_VISION, PROCESSOR, "vision", "chat"),
        (named("Qwen2_5_VLForConditionalGeneration"), PROCESSOR, "vision", "chat"),
        (named("OwnVisionForCausalLM", vision_config={"a": 1}), PROCESSOR, "vision", "chat"),
        (named("VoxtralForConditionalGeneration"), PROCESSOR, "audio_language", "chat"),
        (named("OwnEarForCausalLM", audio_config={"a": 1}), PROCESSOR, "audio_language", "chat"),
        (WHISPER, PROCESSOR, "transcription", "transcription"),
        (named("BertModel"), [], "embedding", "embedding"),
        (LLAMA, ["modules.json"], "embedding", "embedding"),
    ],
)
def test_each_kind_is_told_by_its_small_files(config, names, kind, task):
    assert kind_of(config, *names) == kind
    assert task_of(kind) == task


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (named("BertForSequenceClassification"), "sorts texts into classes"),
        (named("BertForMaskedLM"), "fills gaps"),
        (named("Wav2Vec2ForCTC"), "hears sound in a way"),
        (named("T5ForConditionalGeneration", is_encoder_decoder=True), "one text into another"),
        (named("CLIPModel", vision_config={"a": 1}), "nothing here can run"),
        (named("BarkModel"), "nothing here can run"),
        (named("SomethingElse"), "nothing here can run"),
    ],
)
def test_what_cannot_be_run_is_refused_with_what_it_is(config, words):
    with pytest.raises(ModelKindUnsupported, match=words) as refused:
        kind_of(config)
    assert refused.value.next_step.startswith("Load a language model")


def test_a_pipeline_of_diffusers_is_no_language_model():
    with pytest.raises(ModelKindUnsupported, match="by diffusion"):
        kind_of({}, "model_index.json")


def test_what_sees_or_hears_needs_the_file_that_says_how():
    for config in (GEMMA_VISION, WHISPER):
        with pytest.raises(ModelConfigInvalid, match=r"no preprocessor_config\.json"):
            kind_of(config, "config.json")


def test_a_config_that_names_no_class_is_told_so():
    with pytest.raises(ModelConfigInvalid, match="names no architectures"):
        kind_of({"model_type": "llama"})


def test_a_class_of_transformers_needs_no_code_of_a_repository():
    assert is_known(model_config(LLAMA))
    assert is_known(model_config(named("Phi3ForCausalLM")))
    assert not is_known(model_config(named("OwnForCausalLM")))


# What is read of it ------------------------------------------------------------------------------


def test_the_cache_is_told_by_layers_heads_and_their_length():
    assert model_config(LLAMA).attention == Attention(2, 0, 0, 2, 16, 16)
    assert model_config(LLAMA).context_length == 2048


def test_a_vision_models_numbers_are_those_of_its_text_part():
    config = model_config(GEMMA_VISION)

    assert config.attention == Attention(1, 5, 512, 1, 32, 32)
    assert (config.context_length, config.hidden_size) == (131_072, 64)
    assert config.has_vision


@pytest.mark.parametrize(
    ("changes", "full", "windowed"),
    [
        ({"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 8}, 1, 1),
        ({"layer_types": ["linear_attention", "full_attention"]}, 1, 0),
        ({"sliding_window": 8}, 0, 2),
        ({"sliding_window": 8, "use_sliding_window": False}, 2, 0),
        ({"sliding_window": None}, 2, 0),
        ({"num_hidden_layers": 10**9}, 1000, 0),
        ({"num_hidden_layers": "many"}, 0, 0),
    ],
)
def test_layers_keep_everything_a_window_or_nothing(changes, full, windowed):
    attention = model_config(LLAMA | changes).attention
    assert (attention.full_layers, attention.windowed_layers) == (full, windowed)


def test_latent_attention_is_counted_as_it_is_computed_with():
    latent = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
    attention = model_config(LLAMA | latent | {"v_head_dim": 128}).attention
    assert (attention.key_length, attention.value_length) == (192, 128)


def test_a_strangers_nonsense_is_read_as_nothing():
    config = model_config(
        {"architectures": "Llama", "auto_map": 3, "text_config": [], "quantization_config": 1}
    )
    assert (config.architectures, config.classes_of_its_own) == ((), frozenset())
    assert config.quantization is None
