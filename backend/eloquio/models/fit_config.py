"""How much memory a worker will hold for a model, from its config and its weights' headers.

The cache is bounded by what the worker shares among its requests: see `worker_plan.cache_tokens`.
A layer with a sliding window holds that window of each request. Estimated: what a step computes in,
and the libraries themselves.
"""

from eloquio.engines.spec import MemoryPlan
from eloquio.models.entry import SafetensorsFolder
from eloquio.models.model_config import Attention
from eloquio.models.safetensors_header import Weights
from eloquio.worker_plan import ModelKind, cache_tokens

DEFAULT_SLOTS = 8
# torch and transformers, as a process holds them that has loaded nothing yet (2.14 and 5.17).
_LIBRARIES_BYTES = 500 * 1024 * 1024
# NF4 with a float32 scale for every 64 values.
_BYTES_IN_4_BIT = 0.5 + 4 / 64
_ACTIVATION_BYTES = 4
_STEP_TOKENS = {"cpu": 128}
_STEP_TOKENS_OF_A_GPU = 2048
# What an encoder of sound makes of half a minute: each request attends to it.
_SOUND_TOKENS = 1500
# Texts that are read in one pass.
_READ_AT_ONCE = 8


def plan(
    model: SafetensorsFolder,
    adapters_bytes: int,
    context_length: int,
    slots: int,
    device: str,
    *,
    in_4bit: bool,
    is_widened: bool = False,
) -> MemoryPlan:
    """`context_length` is that of one request, in tokens; `slots` how many are answered at once.

    `is_widened`: weights of 16 bits are held, and computed with, as float32.
    """
    weights = _bytes_in_4bit(model.weights) if in_4bit else model.weights.size_bytes
    if is_widened:
        weights *= 2
    return MemoryPlan(
        weights_bytes=weights + adapters_bytes,
        kv_bytes=_cache_bytes(model, context_length, slots) * (2 if is_widened else 1),
        projector_bytes=0,
        compute_bytes=_LIBRARIES_BYTES + _compute_bytes(model, context_length, slots, device),
        device=device,
    )


def _bytes_in_4bit(weights: Weights) -> int:
    """The matrices in 4 bits; embeddings, scores and norms stay as they are."""
    if not weights.parameters:
        return weights.size_bytes
    each = weights.size_bytes / weights.parameters
    return int(weights.size_bytes - weights.matrix_parameters * max(0.0, each - _BYTES_IN_4_BIT))


def _cache_bytes(model: SafetensorsFolder, context_length: int, slots: int) -> int:
    attention = model.config.attention
    value_bytes = 4 if model.weights.dtype in ("F32", "F64") else 2
    match model.kind:
        case "embedding":
            values = 0
        case "transcription":
            values = attention_values(attention, (context_length + _SOUND_TOKENS) * slots, 0)
        case _:
            tokens = cache_tokens(context_length, slots)
            step = min(context_length, _STEP_TOKENS["cpu"])
            windowed = min(tokens, slots * (attention.window + step))
            values = attention_values(attention, tokens, windowed)
    return values * value_bytes


def attention_values(attention: Attention, tokens: int, windowed_tokens: int) -> int:
    """The values that all layers keep of so many tokens, and their windowed ones of those."""
    kept = attention.full_layers * tokens + attention.windowed_layers * windowed_tokens
    return kept * attention.values_per_token()


def _compute_bytes(model: SafetensorsFolder, context_length: int, slots: int, device: str) -> int:
    config = model.config
    tokens = _tokens_at_once(model.kind, context_length, device)
    widest = 3 * config.intermediate_size + 6 * config.hidden_size
    scores = slots * config.vocabulary_size
    return _ACTIVATION_BYTES * (tokens * widest + 3 * scores)


def _tokens_at_once(kind: ModelKind, context_length: int, device: str) -> int:
    if kind == "embedding":
        return _READ_AT_ONCE * context_length
    return _STEP_TOKENS.get(device, _STEP_TOKENS_OF_A_GPU)
