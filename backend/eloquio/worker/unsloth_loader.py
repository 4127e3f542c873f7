"""Unsloth's own loaders: about twice as fast on the GPUs that it supports."""

from typing import Any

# First: it changes classes of transformers when it is imported.
import unsloth

from eloquio.worker.load import Loaded
from eloquio.worker_plan import WorkerPlan


def load(plan: WorkerPlan) -> Loaded:
    """Raises whatever unsloth raises for a model or a machine that it doesn't take."""
    kind: Any = unsloth.FastVisionModel if plan.kind == "vision" else unsloth.FastLanguageModel
    model, processor = kind.from_pretrained(
        plan.model_path,
        max_seq_length=plan.context_length or None,
        dtype=None if plan.dtype == "auto" else plan.dtype,
        load_in_4bit=plan.load_in_4bit,
        trust_remote_code=plan.trust_remote_code,
        local_files_only=True,
    )
    kind.for_inference(model)
    return Loaded(
        plan=plan,
        model=model,
        processor=processor,
        tokenizer=getattr(processor, "tokenizer", processor),
        loader="unsloth",
    )
