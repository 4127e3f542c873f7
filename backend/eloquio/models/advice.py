"""What a person should know of what they asked for."""

from eloquio.engines.inventory import Build
from eloquio.models.identify_config import is_known
from eloquio.models.model_config import ModelConfig
from eloquio.models.schema import LoadRequest


def beyond_training(context: int, native: int | None) -> list[str]:
    if not native or context <= native:
        return []
    return [f"The model was made for a context of {native} tokens; beyond it, answers get worse."]


def unused_cards(build: Build) -> list[str]:
    """What stays idle though a person will think that the model runs on it."""
    if build.devices or not build.cards:
        return []
    names = ", ".join(card.name for card in build.cards)
    return [f"This llama-server can't use {names}: the model runs on the processor."]


def without_effect(request: LoadRequest) -> list[str]:
    """A sentence for each thing that was set for a GGUF model on this machine, and does nothing.

    `load_in_4bit` isn't one: nobody need have set what is true by default.
    """
    sentences = []
    for field in ("trust_remote_code", "allow_pickle"):
        if getattr(request, field):
            sentences.append(f"{field} has no effect: a GGUF model brings no code to run.")
    if request.hf_token is not None and request.hf_token.get_secret_value():
        sentences.append("hf_token has no effect: the model is on this machine already.")
    return sentences


def shorter_than_own(context: int, asked: int, native: int) -> list[str]:
    if asked or context >= native:
        return []
    return [
        f"It is loaded with a context of {context} tokens of the {native} it was made for;"
        " max_seq_length asks for more."
    ]


def without_effect_on_worker(request: LoadRequest, config: ModelConfig) -> list[str]:
    """As `without_effect`, for a model that the worker runs."""
    sentences = []
    for field in ("cache_type_kv", "gpu_layers", "n_cpu_moe", "tensor_split"):
        if getattr(request, field):
            sentences.append(f"{field} has no effect: it is for GGUF models.")
    brings_code = bool(config.classes_of_its_own)
    if request.trust_remote_code and not brings_code:
        sentences.append("trust_remote_code has no effect: the model brings no code to run.")
    if brings_code and is_known(config) and not request.trust_remote_code:
        sentences.append("The repository's own code isn't run: transformers has the model's class.")
    if request.hf_token is not None and request.hf_token.get_secret_value():
        sentences.append("hf_token has no effect: the model is on this machine already.")
    return sentences
