"""How `generate` is ended that nobody waits for any more."""

import threading
from typing import Any

import torch
from transformers import StoppingCriteria
from transformers.generation.stopping_criteria import StoppingCriteriaList


class _Left(StoppingCriteria):
    def __init__(self, is_left: threading.Event) -> None:
        self._is_left = is_left

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return torch.full((input_ids.shape[0],), self._is_left.is_set(), device=input_ids.device)


def once_left(is_left: threading.Event) -> StoppingCriteriaList:
    """Stops `generate` after the step in which `is_left` was set."""
    return StoppingCriteriaList([_Left(is_left)])
