"""In which precision a worker computes on this machine's processor."""

from collections.abc import Set as AbstractSet

from eloquio.models.entry import SafetensorsFolder

# Linux's names on x86 and on ARM. Without one of them torch computes bfloat16 value by value: a
# prompt takes six times as long as in float32 (seen with torch 2.14 on a processor with AVX2).
_BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16", "bf16", "svebf16"})
_16_BITS = ("BF16", "F16")


def is_widened(model: SafetensorsFolder, device: str, features: AbstractSet[str]) -> bool:
    """Whether its 16-bit weights are loaded as float32. `features` are the processor's."""
    writes = model.kind != "embedding" and model.config.quantization is None
    on_processor = device == "cpu" and bool(features) and not features & _BFLOAT16
    return writes and on_processor and model.weights.dtype in _16_BITS


WIDENED = (
    "It computes in float32, which takes twice the memory: this processor has no instructions for"
    " 16 bits, and would be several times slower."
)
