"""What is acted on of a model's config.json."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from eloquio.models.json_file import Table, count, table, text, texts

MAX_LAYERS = 1000
_DEFAULT_CONTEXT = 4096


@dataclass(frozen=True)
class Attention:
    """The cache that the text part of a model holds, by its geometry."""

    full_layers: int = 0
    """Of those that attend to the whole context."""
    windowed_layers: int = 0
    window: int = 0
    """In tokens, of the windowed layers."""
    key_heads: int = 0
    key_length: int = 0
    value_length: int = 0

    def values_per_token(self) -> int:
        """Of one layer, keys and values."""
        return self.key_heads * (self.key_length + self.value_length)


@dataclass(frozen=True)
class ModelConfig:
    architectures: tuple[str, ...]
    model_type: str | None
    transformers_version: str | None
    """The one that wrote the file."""
    classes_of_its_own: frozenset[str]
    """The auto classes for which the repository brings code."""
    is_encoder_decoder: bool
    has_vision: bool
    has_audio: bool
    quantization: str | None
    """The method by which its weights are quantized already, such as bitsandbytes."""
    context_length: int
    """What it was made for, in tokens."""
    hidden_size: int
    intermediate_size: int
    vocabulary_size: int
    attention: Attention = field(default_factory=Attention)

    @property
    def architecture(self) -> str:
        """The first class it names; empty if none."""
        return self.architectures[0] if self.architectures else ""


def model_config(content: Table) -> ModelConfig:
    """Believes no number that no model could have; what isn't told is 0."""
    part = _text_part(content)
    classes = frozenset(table(content.get("auto_map")))
    return ModelConfig(
        architectures=texts(content.get("architectures")),
        model_type=text(content.get("model_type")),
        transformers_version=text(content.get("transformers_version")),
        classes_of_its_own=classes,
        is_encoder_decoder=content.get("is_encoder_decoder") is True,
        has_vision=_has(content, "vision_config", "vision_tower", "mm_vision_tower"),
        has_audio=_has(content, "audio_config", "audio_encoder_config", "audio_processor"),
        quantization=text(table(content.get("quantization_config")).get("quant_method")),
        context_length=_first(
            part, "max_position_embeddings", "n_positions", "max_target_positions", "seq_length",
            "max_seq_len", "max_sequence_length",
        ) or _DEFAULT_CONTEXT,
        hidden_size=_first(part, "hidden_size", "n_embd", "d_model", "dim"),
        intermediate_size=_first(
            part, "intermediate_size", "n_inner", "ffn_dim", "decoder_ffn_dim", "d_ff"
        ),
        vocabulary_size=_first(part, "vocab_size"),
        attention=_attention(part),
    )  # fmt: skip


def _text_part(content: Table) -> Table:
    """Where the language model's own numbers stand, in a model that also sees or hears."""
    for name in ("thinker_config", "llm_config", "language_config", "text_config"):
        inner = table(content.get(name))
        if inner:
            return _text_part(inner) if "text_config" in inner else inner
    return content


def _has(content: Table, *names: str) -> bool:
    places: list[Mapping[str, Any]] = [content, table(content.get("thinker_config"))]
    return any(place.get(name) for place in places for name in names)


def _first(part: Table, *names: str) -> int:
    """The first of these that the file tells as a number."""
    return next((value for name in names if (value := count(part.get(name)))), 0)


def _attention(part: Table) -> Attention:
    layers = min(
        _first(part, "num_hidden_layers", "n_layer", "decoder_layers", "n_layers", "num_layers"),
        MAX_LAYERS,
    )
    heads = _first(
        part, "num_attention_heads", "n_head", "decoder_attention_heads", "n_heads", "num_heads"
    )
    hidden = _first(part, "hidden_size", "n_embd", "d_model", "dim")
    usual = _first(part, "head_dim") or (hidden // heads if heads else 0)
    is_latent = bool(count(part.get("kv_lora_rank")))
    key_length = _first(part, "qk_nope_head_dim") + _first(part, "qk_rope_head_dim")
    window = count(part.get("sliding_window")) or 0
    full, windowed = _layer_kinds(part, layers, window)
    return Attention(
        full_layers=full,
        windowed_layers=windowed,
        window=window,
        key_heads=_first(part, "num_key_value_heads", "n_head_kv", "num_kv_heads") or heads,
        # Latent attention's keys and values are kept as transformers computes with them.
        key_length=key_length if is_latent and key_length else usual,
        value_length=_first(part, "v_head_dim") or usual if is_latent else usual,
    )


def _layer_kinds(part: Table, layers: int, window: int) -> tuple[int, int]:
    """How many layers attend to everything, and how many to a window; others keep no cache."""
    told = texts(part.get("layer_types"))[:MAX_LAYERS]
    if told:
        windowed = sum(kind in ("sliding_attention", "chunked_attention") for kind in told)
        return sum(kind == "full_attention" for kind in told), windowed if window else 0
    if not window or part.get("use_sliding_window") is False:
        return layers, 0
    every = count(part.get("sliding_window_pattern")) or 0
    if every > 1:
        return layers // every, layers - layers // every
    return 0, layers
