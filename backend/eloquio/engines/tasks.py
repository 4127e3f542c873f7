"""What a model is made for, and what it is asked for."""

from eloquio.engines.spec import EngineSpec, Task
from eloquio.errors import (
    ModelCannotChat,
    ModelCannotEmbed,
    ModelCannotRerank,
    ModelCannotTranscribe,
)

_REFUSALS = {
    "embedding": ModelCannotEmbed,
    "rerank": ModelCannotRerank,
    "transcription": ModelCannotTranscribe,
}


def refuse_other_task(spec: EngineSpec, task: Task | None) -> None:
    """Raise what fits where `spec` is for something else; None is anything."""
    if task is not None and spec.task != task:
        raise _REFUSALS.get(task, ModelCannotChat)(
            f"{spec.model} is a model for {spec.task}, not for {task}.", param="model"
        )
