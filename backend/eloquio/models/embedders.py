"""Models that read a text and write none: how much they read at once, and what they make of it."""

from enum import IntEnum
from typing import Literal

from eloquio.engines.spec import Task
from eloquio.models.gguf import GgufHeader

ENCODER_ARCHITECTURES = {
    "bert",
    "nomic-bert",
    "nomic-bert-moe",
    "jina-bert-v2",
    "jina-bert-v3",
    "modern-bert",
    "neo-bert",
    "eurobert",
    "gemma-embedding",
    "llama-embed",
    "t5encoder",
}
READING_TASKS: tuple[Task, ...] = ("embedding", "rerank")
# What nobody asked for and hardly any text needs isn't held in memory: an encoder holds little for
# a token of its context, a decoder a row of keys and values, and of logits where it reads whole.
_ENCODERS_CONTEXT = 8192
_DECODERS_CONTEXT = 2048


class Pooling(IntEnum):
    """How a model makes one vector, or one score, of those of its tokens."""

    NONE = 0
    MEAN = 1
    CLASS_TOKEN = 2
    LAST = 3
    RANK = 4


def pooling_of(header: GgufHeader) -> Pooling:
    """As the file says; NONE where it doesn't, or in a way that nobody knows."""
    told = header.integer(header.key("pooling_type"))
    return Pooling(told) if told in list(Pooling) else Pooling.NONE


def is_encoder(header: GgufHeader) -> bool:
    """Whether its tokens look ahead too, so that nothing is kept from one batch for the next."""
    is_causal = header.metadata.get(header.key("attention.causal"))
    return is_causal is False or (
        is_causal is None and header.architecture in ENCODER_ARCHITECTURES
    )


def reads_whole(header: GgufHeader, task: Task) -> bool:
    """Whether an input has to fit one batch: only a last token's vector can be had in several."""
    return task in READING_TASKS and (is_encoder(header) or pooling_of(header) is not Pooling.LAST)


def own_pooling(header: GgufHeader, task: Task) -> Literal["mean"] | None:
    """What an engine has to be told: without any, a text has no vector."""
    is_missing = task == "embedding" and pooling_of(header) is Pooling.NONE
    return "mean" if is_missing else None


def own_context(header: GgufHeader, task: Task, native: int) -> int:
    """The context in tokens that it is loaded with where none is asked for."""
    if task not in READING_TASKS:
        return native
    return min(native, _ENCODERS_CONTEXT if is_encoder(header) else _DECODERS_CONTEXT)
