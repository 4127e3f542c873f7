"""A model in memory: which class it needs, who loads it, and what had to be done without."""

import json
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.utils import logging as transformers_logging

from eloquio.worker.failures import LoadFailed, is_out_of_memory
from eloquio.worker.progress import Progress
from eloquio.worker_plan import ModelKind, WorkerPlan

_CLASSES: dict[ModelKind, Any] = {
    "text": transformers.AutoModelForCausalLM,
    "vision": transformers.AutoModelForImageTextToText,
    "audio_language": transformers.AutoModelForMultimodalLM,
    "transcription": transformers.AutoModelForSpeechSeq2Seq,
    "embedding": transformers.AutoModel,
}
_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
# What transformers raises where a repository brings code that may not run.
_NEEDS_CODE = "trust_remote_code"


@dataclass
class Loaded:
    """`processor` is the whole model's: a tokenizer, or what also prepares pictures or sound."""

    plan: WorkerPlan
    model: Any
    processor: Any
    tokenizer: Any
    loader: str
    warnings: list[str] = field(default_factory=list)

    @property
    def config(self) -> Any:
        return self.model.config

    @property
    def context_length(self) -> int:
        """In tokens: what was asked for, within what the model was made for."""
        text = self.config.get_text_config()
        own = getattr(text, "max_position_embeddings", None) or getattr(text, "n_positions", None)
        asked = self.plan.context_length
        return min(asked, own) if asked and own else asked or own or 4096

    @property
    def end_ids(self) -> frozenset[int]:
        """All of the model's end tokens: of its generation_config, its config and its tokenizer."""
        found: set[int] = set()
        for holder in (self.model.generation_config, self.config, self.tokenizer):
            ids = getattr(holder, "eos_token_id", None)
            found.update([ids] if isinstance(ids, int) else ids or ())
        return frozenset(found)


def load(plan: WorkerPlan, progress: Progress) -> Loaded:
    """Raises a LoadFailed for every cause that is known; reads nothing but the plan's folders."""
    if plan.threads:
        torch.set_num_threads(plan.threads)
    _refuse_pickle(plan)
    try:
        with _counted(plan, progress):
            return _load(plan)
    except LoadFailed:
        raise
    except torch.OutOfMemoryError as error:
        raise LoadFailed("out_of_memory", str(error)) from error
    except (ValueError, KeyError, ImportError, OSError, RuntimeError) as error:
        raise _explained(error) from error


def _load(plan: WorkerPlan) -> Loaded:
    warnings: list[str] = []
    if _may_use_unsloth(plan):
        try:
            from eloquio.worker import unsloth_loader

            return unsloth_loader.load(plan)
        except Exception as error:
            if plan.loader == "unsloth":
                raise LoadFailed("loader_refused", f"unsloth refused it: {error}") from error
            warnings.append(f"Unsloth refused the model, so transformers runs it: {error}")
    model = _CLASSES[plan.kind].from_pretrained(plan.model_path, **_options(plan))
    processor = processor_of(plan)
    return Loaded(
        plan=plan,
        model=model.eval(),
        processor=processor,
        tokenizer=getattr(processor, "tokenizer", processor),
        loader="transformers",
        warnings=warnings,
    )


def _may_use_unsloth(plan: WorkerPlan) -> bool:
    """auto asks for a GPU that it supports; who asks by name gets it where it runs at all."""
    if plan.loader == "unsloth":
        return True
    can = plan.kind in ("text", "vision") and plan.device == "auto"
    return plan.loader == "auto" and can and torch.cuda.is_available()


def _options(plan: WorkerPlan) -> dict[str, Any]:
    options: dict[str, Any] = {
        "dtype": _DTYPES.get(plan.dtype, "auto"),
        "local_files_only": True,
        "trust_remote_code": plan.trust_remote_code,
        "device_map": device_of(plan),
    }
    if not plan.allow_pickle:
        options["use_safetensors"] = True
    if plan.load_in_4bit:
        options["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16, bnb_4bit_quant_type="nf4"
        )
    return options


def device_of(plan: WorkerPlan) -> str:
    if plan.device == "cpu":
        return "cpu"
    if torch.cuda.is_available():
        return "cuda:0"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def processor_of(plan: WorkerPlan) -> Any:
    """The tokenizer of a text model, the whole processor of another."""
    kind = transformers.AutoTokenizer
    if plan.kind in ("vision", "audio_language", "transcription"):
        kind = transformers.AutoProcessor
    return kind.from_pretrained(
        plan.model_path, local_files_only=True, trust_remote_code=plan.trust_remote_code
    )


def _refuse_pickle(plan: WorkerPlan) -> None:
    folder = Path(plan.model_path)
    if plan.allow_pickle or any(folder.glob("*.safetensors")):
        return
    raise LoadFailed("pickle_refused", "the folder has no safetensors weights")


def _explained(error: Exception) -> LoadFailed:
    words = str(error)
    if is_out_of_memory(words):
        return LoadFailed("out_of_memory", words)
    if _NEEDS_CODE in words:
        return LoadFailed("custom_code", "the model needs code of its repository to run")
    if "does not recognize this architecture" in words or "Unrecognized configuration" in words:
        return LoadFailed("architecture_unsupported", words)
    return LoadFailed("refused", words)


@contextmanager
def _counted(plan: WorkerPlan, progress: Progress) -> Iterator[None]:
    """While it goes on, `progress` follows the weights that transformers has put in place."""
    sizes = _weight_sizes(Path(plan.model_path))
    progress.total_bytes = sum(sizes.values()) or plan.weights_bytes
    # Those of a tensor that transformers knows by another name than the file does.
    average = progress.total_bytes / max(1, len(sizes))

    def follow(factory: Callable[..., Any], arguments: Any, options: dict[str, Any]) -> Any:
        if options.get("desc") != "Loading weights" or not arguments:
            return factory(*arguments, **options)
        return _passing(arguments[0], sizes, average, progress)

    previous = transformers_logging.set_tqdm_hook(follow)
    try:
        yield
    finally:
        transformers_logging.set_tqdm_hook(previous)
    progress.loaded_bytes = progress.total_bytes


def _passing(
    items: Any, sizes: dict[str, int], average: float, progress: Progress
) -> Iterator[Any]:
    passed = 0.0
    for item in items:
        yield item
        passed += sizes.get(item[0], average)
        progress.loaded_bytes = min(int(passed), progress.total_bytes)


def _weight_sizes(folder: Path) -> dict[str, int]:
    """Bytes by the tensor's name, by the headers of the folder's safetensors files."""
    sizes: dict[str, int] = {}
    for file in folder.glob("*.safetensors"):
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > os.fstat(stream.fileno()).st_size:
                raise LoadFailed("refused", f"{file.name} is no whole safetensors file")
            header: dict[str, Any] = json.loads(stream.read(length))
        for name, tensor in header.items():
            if name != "__metadata__":
                begin, end = tensor["data_offsets"]
                sizes[name] = end - begin
    return sizes
