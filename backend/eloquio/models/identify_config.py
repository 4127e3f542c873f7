"""What kind of model a folder of safetensors is, by its small files alone."""

import csv
from collections.abc import Collection
from functools import cache
from importlib.resources import files

from eloquio.engines.spec import Task
from eloquio.errors import ModelConfigInvalid, ModelKindUnsupported
from eloquio.models.byte_source import shown_name
from eloquio.models.model_config import ModelConfig
from eloquio.worker_plan import ModelKind

_TASKS: dict[ModelKind, Task] = {
    "text": "chat",
    "vision": "chat",
    "audio_language": "chat",
    "transcription": "transcription",
    "embedding": "embedding",
}
_PROCESSORS = {"preprocessor_config.json", "processor_config.json"}
# By what a class is called: what it does instead, and what to load.
_OTHERS = (
    (
        ("ForSequenceClassification", "ForTokenClassification", "ForMultipleChoice"),
        "sorts texts into classes",
    ),
    (("ForQuestionAnswering", "ForNextSentencePrediction"), "marks answers in a text"),
    (("ForMaskedLM", "ForPreTraining", "ForMaskedImageModeling"), "fills gaps"),
    (("ForCTC", "ForRNNT", "ForTDT"), "hears sound in a way that can't be used here"),
    (("ForTextToSpeech", "ForTextToWaveform"), "speaks"),
    (("Classification", "Detection", "Segmentation", "DepthEstimation"), "sorts pictures or sound"),
    (("RewardModel", "ForReward"), "scores answers"),
)
_LANGUAGE_MODEL = "Load a language model; GET /v1/models lists what is here."


def task_of(kind: ModelKind) -> Task:
    return _TASKS[kind]


def is_known(config: ModelConfig) -> bool:
    """Whether transformers itself has the class, so that no code of a repository is needed."""
    return config.architecture in _kinds()


def identify(config: ModelConfig, file_names: Collection[str], name: str) -> ModelKind:
    """`file_names` are those of the model's folder; `name` is what a text may call it.

    Raises ModelKindUnsupported for what nothing here can run, saying what to load instead, and
    ModelConfigInvalid where a file is missing without which it can't be known or used.
    """
    if "model_index.json" in file_names:
        raise ModelKindUnsupported(
            f"{name} makes pictures or films by diffusion.", next_step=_LANGUAGE_MODEL
        )
    if "modules.json" in file_names:
        return "embedding"
    kind = _kind(config, name)
    if kind in ("vision", "audio_language", "transcription") and not _PROCESSORS & set(file_names):
        raise ModelConfigInvalid(
            f"{name} has no preprocessor_config.json, which says how it sees or hears.",
            next_step="Put the one of the original model beside config.json.",
        )
    return kind


def _kind(config: ModelConfig, name: str) -> ModelKind:
    architecture = config.architecture
    if not architecture:
        raise ModelConfigInvalid(
            f"{name} doesn't say what it is: its config.json names no architectures.",
            next_step="Download it again, or save it anew with a current transformers.",
        )
    kind = _kinds().get(architecture)
    if kind is not None:
        return kind
    for endings, does in _OTHERS:
        if architecture.endswith(endings):
            raise _unsupported(config, name, does)
    # One of the repository's own, perhaps.
    shape = None if architecture in _kinds() else _by_shape(config)
    if shape is None:
        translates = config.is_encoder_decoder
        does = "turns one text into another" if translates else "nothing here can run"
        raise _unsupported(config, name, does)
    return shape


def _by_shape(config: ModelConfig) -> ModelKind | None:
    """Of a class that nobody knows here."""
    architecture = config.architecture
    if config.is_encoder_decoder or not config.vocabulary_size:
        return None
    if architecture.endswith(("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")):
        if config.has_vision:
            return "vision"
        if config.has_audio:
            return "audio_language"
        return "text"
    is_bare = architecture.endswith("Model") and not (config.has_vision or config.has_audio)
    return "embedding" if is_bare else None


def _unsupported(config: ModelConfig, name: str, does: str) -> ModelKindUnsupported:
    return ModelKindUnsupported(
        f"{name} is a model that {does} ({shown_name(config.architecture)}).",
        next_step=_LANGUAGE_MODEL,
    )


@cache
def _kinds() -> dict[str, ModelKind | None]:
    """Of each class that transformers 5.17 has for a model of these kinds; None is none of them."""
    text = (files("eloquio.models") / "architectures.csv").read_text("utf-8")
    kinds: dict[str, ModelKind | None] = {}
    for row in csv.DictReader(text.splitlines()):
        told = next((kind for kind in _TASKS if kind == row["kind"]), None)
        kinds[row["architecture"]] = told
    return kinds
