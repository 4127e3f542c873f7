"""How much memory a model will hold, from its header alone.

Exact, as llama-server itself reports it with one KV cache for all slots: the cache of models whose
layers all attend to the whole context, of alternating sliding-window models whose header or
architecture tells the pattern, of multi-head latent attention, and the state of recurrent layers.
An upper bound: the KV cache of architectures whose window pattern isn't known here.
Estimated: the compute buffers. What a projector needs beside its weights isn't counted.
"""

from eloquio.engines import spec
from eloquio.engines.spec import CacheType, MemoryPlan, Task
from eloquio.models import embedders
from eloquio.models.ggml_types import TYPES_BY_NAME
from eloquio.models.gguf import GgufHeader

MAX_LAYERS = 1000
"""More than any model has. A stranger's number: it must not make the loops here long."""
# llama.cpp rounds the cells of a KV cache up to a multiple of this.
_CELL_STEP = 256
_DEFAULT_CONTEXT = 4096
_STATE_BYTES = 4
_MASK_BYTES = 2
_ACTIVATION_BYTES = 4
# Every n-th layer attends to everything, the others to a window; of architectures that don't say so
# in their header.
_WINDOW_PATTERNS = {
    "cohere2": 4,
    "exaone4": 4,
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gpt-oss": 2,
    "olmo2": 4,
    "smallthinker": 4,
}
# Their layers hold both a KV cache and a recurrent state.
_BOTH_IN_EVERY_LAYER = {"falcon-h1"}


def plan(
    header: GgufHeader,
    weights_bytes: int,
    projector_bytes: int,
    context_length: int,
    n_parallel: int,
    cache_type_kv: CacheType | None,
    device: str,
    batch_tokens: int | None = None,
    task: Task = "chat",
) -> MemoryPlan:
    """What an engine with these options will hold.

    `context_length` is what all slots share, 0 for the model's own; of a model that only reads,
    each slot has as much. `batch_tokens` is the engine's `--ubatch-size`, by default what the
    device and the model want. `weights_bytes` counts all shards.
    """
    context_length = context_length or header.context_length or _DEFAULT_CONTEXT
    if batch_tokens is None:
        reads_whole = embedders.reads_whole(header, task)
        batch_tokens = context_length if reads_whole else spec.batch_tokens(device)
    is_reader = task in embedders.READING_TASKS
    caches, sharing = (n_parallel, 1) if is_reader else (1, n_parallel)
    cells = _rounded_up(context_length)
    window_cells = _window_cells(header, cells, sharing, batch_tokens)
    cache_bytes = _kv_bytes(header, cells, window_cells, cache_type_kv or "f16")
    # Without a cache, the tokens of a batch attend to one another.
    attended_cells = cells + window_cells if cache_bytes else batch_tokens if is_reader else 0
    has_logits_of_all = is_reader and not embedders.is_encoder(header)
    logits = batch_tokens if has_logits_of_all else n_parallel
    return MemoryPlan(
        weights_bytes=weights_bytes,
        kv_bytes=cache_bytes * caches + _state_bytes(header) * n_parallel,
        projector_bytes=projector_bytes,
        compute_bytes=_compute_bytes(header, attended_cells, batch_tokens, logits),
        device=device,
    )


def row_bytes(cache_type: CacheType, elements: int) -> int:
    """The bytes of one row of `elements` values, in whole blocks."""
    kind = TYPES_BY_NAME[cache_type.upper()]
    return -(-elements // kind.block_elements) * kind.block_bytes


def _kv_bytes(header: GgufHeader, cells: int, window_cells: int, cache_type: CacheType) -> int:
    if embedders.is_encoder(header):
        return 0  # an encoder keeps nothing between batches
    heads = _per_layer(header, "attention.head_count_kv") or _per_layer(
        header, "attention.head_count"
    )
    windowed, recurrent = _windowed(header), _recurrent(header)
    lengths = {is_windowed: _lengths(header, is_windowed) for is_windowed in (False, True)}
    total = 0
    for layer in range(_layers_with_cache(header)):
        if not heads or not heads[layer] or recurrent[layer]:
            continue
        key_length, value_length = lengths[windowed[layer]]
        row = row_bytes(cache_type, heads[layer] * key_length)
        if value_length:
            row += row_bytes(cache_type, heads[layer] * value_length)
        total += row * (window_cells if windowed[layer] else cells)
    return total


def _layers_with_cache(header: GgufHeader) -> int:
    """Less the last ones, which share an earlier layer's cache or only predict further tokens."""
    shared = header.integer(header.key("attention.shared_kv_layers")) or 0
    further = header.integer(header.key("nextn_predict_layers")) or 0
    return max(0, _layers(header) - shared - further)


def _lengths(header: GgufHeader, is_windowed: bool) -> tuple[int, int]:
    """Values of a head in a key and in a value."""
    heads = max(_per_layer(header, "attention.head_count"), default=0)
    usual = (header.embedding_length or 0) // heads if heads else 0

    def length(name: str) -> int:
        own = header.integer(header.key(f"attention.{name}_swa")) if is_windowed else None
        found = own or header.integer(header.key(f"attention.{name}"))
        return usual if found is None else found

    # Latent attention keeps one compressed vector for key and value.
    has_latent = header.integer(header.key("attention.key_length_mla")) is not None
    return length("key_length"), 0 if has_latent else length("value_length")


def _window_cells(header: GgufHeader, cells: int, n_parallel: int, batch_tokens: int) -> int:
    """The cells of a windowed layer: each slot's window and one batch. 0 without such layers."""
    window = header.integer(header.key("attention.sliding_window")) or 0
    if not any(_windowed(header)):
        return 0
    return min(cells, _rounded_up(window * n_parallel + batch_tokens))


def _windowed(header: GgufHeader) -> list[bool]:
    """Of each layer, whether it attends to a window only."""
    layers = _layers(header)
    if not header.integer(header.key("attention.sliding_window")):
        return [False] * layers
    told = header.integers(header.key("attention.sliding_window_pattern"))
    if told is not None and len(told) > 1:
        return [layer < len(told) and bool(told[layer]) for layer in range(layers)]
    every = told[0] if told else _WINDOW_PATTERNS.get(header.architecture, 1)
    return [every > 1 and layer % every < every - 1 for layer in range(layers)]


def _recurrent(header: GgufHeader) -> list[bool]:
    """Of each layer, whether an interval of attending layers leaves it out."""
    interval = header.integer(header.key("full_attention_interval")) or 1
    return [(layer + 1) % interval != 0 for layer in range(_layers(header))]


def _state_bytes(header: GgufHeader) -> int:
    """What the recurrent layers remember of one sequence."""
    heads = _per_layer(header, "attention.head_count_kv")
    has_both = header.architecture in _BOTH_IN_EVERY_LAYER
    recurrent_layers = sum(
        has_both or is_recurrent or not heads or not heads[layer]
        for layer, is_recurrent in enumerate(_recurrent(header))
    )
    return recurrent_layers * _STATE_BYTES * _state_values(header)


def _state_values(header: GgufHeader) -> int:
    """The values one recurrent layer remembers, by the kind its keys tell."""

    def of(name: str) -> int:
        return header.integer(header.key(name)) or 0

    width = header.embedding_length or 0
    if of("ssm.inner_size"):
        convolved = of("ssm.inner_size") + 2 * of("ssm.group_count") * of("ssm.state_size")
        convolution = max(0, of("ssm.conv_kernel") - 1) * convolved
        return convolution + of("ssm.state_size") * of("ssm.inner_size")
    if of("shortconv.l_cache"):
        return width * (of("shortconv.l_cache") - 1)
    if of("wkv.head_size"):
        return width * ((of("token_shift_count") or 2) + of("wkv.head_size"))
    return 0


def _compute_bytes(
    header: GgufHeader, attended_cells: int, batch_tokens: int, logits_rows: int
) -> int:
    """The attention mask, the widest activations of one batch, and the logits.

    A fit to what llama-server reports with flash attention for a 30-layer model with 576 wide
    embeddings (exact to 0.1 MiB from 2048 to 32768 cells and for batches of 256 to 1024) and for
    a one-layer model with 64 wide ones (0.5 MiB too much). Without flash attention it is far more.
    """
    hidden = _first(header, "feed_forward_length")
    experts = header.integer(header.key("expert_used_count")) or 0
    expert_hidden = header.integer(header.key("expert_feed_forward_length")) or hidden
    width = header.embedding_length or 0
    widest = 3 * max(hidden, experts * expert_hidden) + 4 * width
    activations = batch_tokens * _ACTIVATION_BYTES * widest
    mask = batch_tokens * _MASK_BYTES * attended_cells
    logits = logits_rows * _ACTIVATION_BYTES * (header.vocabulary_length or 0)
    return mask + activations + logits


def _layers(header: GgufHeader) -> int:
    return min(header.block_count or 0, MAX_LAYERS)


def _per_layer(header: GgufHeader, name: str) -> tuple[int, ...]:
    """A value for each layer, from an array or one number for all; empty when it isn't told."""
    values = header.integers(header.key(name))
    if values is None:
        return ()
    layers = _layers(header)
    if len(values) == 1:
        return values * layers
    return (values + values[-1:] * layers)[:layers]


def _first(header: GgufHeader, name: str) -> int:
    return max(header.integers(header.key(name)) or (0,))


def _rounded_up(tokens: int) -> int:
    return -(-tokens // _CELL_STEP) * _CELL_STEP
