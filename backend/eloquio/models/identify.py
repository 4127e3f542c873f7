"""What kind of model a GGUF file is by its header, and whether it can be run alone."""

from eloquio.engines.spec import Task
from eloquio.errors import ModelFileInvalid, ModelKindUnsupported
from eloquio.models.embedders import ENCODER_ARCHITECTURES, Pooling, pooling_of
from eloquio.models.fit import MAX_LAYERS
from eloquio.models.gguf import GgufHeader

_TEXT_DIFFUSION_ARCHITECTURES = {"dream", "llada", "llada-moe", "rnd1"}
_PICTURE_ARCHITECTURES = {
    "flux",
    "sd1",
    "sd3",
    "sdxl",
    "aura",
    "cosmos",
    "hidream",
    "hyvid",
    "ltxv",
    "lumina2",
    "qwen_image",
    "wan",
    "z_image",
}


def is_projector(header: GgufHeader) -> bool:
    """Whether it only turns pictures or sound into tokens for the model beside it."""
    return header.type == "mmproj" or header.architecture == "clip"


def identify(header: GgufHeader, name: str) -> Task:
    """The task the model is for. `name` is what a text may call the file.

    An architecture unknown here is taken for a chat model: the engine knows best what it can run.
    Raises ModelKindUnsupported for what can't be run alone, or by no engine here, and
    ModelFileInvalid for one of more layers than any model has.
    """
    if (header.block_count or 0) > MAX_LAYERS:
        raise ModelFileInvalid(f"{name} is not valid: it claims {header.block_count} layers.")
    _refuse_parts(header, name)
    _refuse_other_kinds(header, name)
    pooling = pooling_of(header)
    if pooling is Pooling.RANK:
        return "rerank"
    if pooling is not Pooling.NONE or header.architecture in ENCODER_ARCHITECTURES:
        return "embedding"
    return "chat"


def _refuse_parts(header: GgufHeader, name: str) -> None:
    if is_projector(header):
        raise ModelKindUnsupported(
            f"{name} is a projector: it lets the model it belongs to see or hear.",
            next_step="Load the model itself; a projector in the same folder comes along.",
        )
    if header.type == "adapter" or header.text("adapter.type") is not None:
        raise ModelKindUnsupported(
            f"{name} is a LoRA adapter, which changes a model and isn't one.",
            next_step="Load the model it was trained on, and name this file in lora_adapters.",
        )
    if header.type == "imatrix" or header.integer("imatrix.chunk_count") is not None:
        raise ModelKindUnsupported(
            f"{name} is an importance matrix, which is only used to make quants.",
            next_step="Load a quant of the model instead.",
        )
    if header.architecture.startswith("eagle"):
        raise ModelKindUnsupported(
            f"{name} is a draft head, which speeds up the model it was made for.",
            next_step="Load that model, and name this file as its draft_model.",
        )
    if not header.tensors and header.split_count == 1:
        raise ModelKindUnsupported(
            f"{name} holds a vocabulary without weights.",
            next_step="Load a file with the model's weights.",
        )


def _refuse_other_kinds(header: GgufHeader, name: str) -> None:
    architecture = header.architecture
    if not architecture:
        raise ModelKindUnsupported(
            f"{name} doesn't say what architecture it has.",
            next_step="Convert it anew with a current converter, or load another model.",
        )
    if architecture in _TEXT_DIFFUSION_ARCHITECTURES:
        raise ModelKindUnsupported(
            f"{name} writes by diffusion ({architecture}), which the engine can't serve.",
            next_step="Load a model that writes token by token.",
        )
    if architecture in _PICTURE_ARCHITECTURES:
        raise ModelKindUnsupported(
            f"{name} makes pictures or films ({architecture}), which can't be run here.",
            next_step="Load a language model.",
        )
    if architecture == "wavtokenizer-dec":
        raise ModelKindUnsupported(
            f"{name} only turns a speech model's tokens into sound.",
            next_step="Load a speech model itself.",
        )
    if header.text("tokenizer.ggml.model") is None:
        raise ModelKindUnsupported(
            f"{name} has no tokenizer: it isn't a language model, or only a part of one.",
            next_step="Load a language model, or the first of the parts.",
        )
