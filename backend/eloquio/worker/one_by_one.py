"""`model.generate` for one request after the other: for models that the batch doesn't take."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, StoppingCriteria
from transformers.generation.stopping_criteria import StoppingCriteriaList

from eloquio.worker.failures import GenerationFailed, OutOfMemory, RequestFailed, is_out_of_memory
from eloquio.worker.generator import Order
from eloquio.worker.sampling import Sampler, Step
from eloquio.worker.turns import ModelTurns


class OneByOne:
    """Takes turns at the model by whole answers, in the order they were asked for."""

    def __init__(self, model: Any, turns: ModelTurns) -> None:
        self._model = model
        self._turns = turns
        self._order = asyncio.Lock()

    async def generate(self, order: Order) -> AsyncGenerator[Step]:
        async with self._order:
            work = _Work(self._model, self._turns, order, asyncio.get_running_loop())
            thread = asyncio.create_task(asyncio.to_thread(work.run))
            try:
                while (step := await work.steps.get()) is not None:
                    if isinstance(step, RequestFailed):
                        raise step
                    yield step
            finally:
                work.is_left.set()
                # The next answer begins once this one's last step is over.
                await asyncio.shield(thread)


class _Work:
    """One call of `generate`, in a thread."""

    def __init__(
        self, model: Any, turns: ModelTurns, order: Order, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.is_left = threading.Event()
        self.steps: asyncio.Queue[Step | RequestFailed | None] = asyncio.Queue()
        self._model = model
        self._turns = turns
        self._order = order
        self._loop = loop

    @torch.no_grad()
    def run(self) -> None:
        try:
            with self._turns.turn(self._order.adapter):
                self._generate()
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            failed = OutOfMemory if is_out_of_memory(words) else GenerationFailed
            self._tell(failed(f"the model failed: {words}"))
        else:
            self._tell(None)

    def _generate(self) -> None:
        order, device = self._order, self._model.device
        ids = torch.tensor([list(order.prompt.ids)], device=device)
        inputs = {
            name: value.to(device) if hasattr(value, "to") else value
            for name, value in order.prompt.inputs.items()
        }
        inputs.setdefault("attention_mask", torch.ones_like(ids))
        self._model.generate(
            input_ids=ids,
            **inputs,
            generation_config=GenerationConfig(
                do_sample=False,
                max_new_tokens=order.max_new_tokens,
                eos_token_id=sorted(order.end_ids) or None,
                pad_token_id=min(order.end_ids, default=0),
            ),
            logits_processor=LogitsProcessorList([_Choice(self._order.sampler(), self._tell)]),
            stopping_criteria=StoppingCriteriaList([_Left(self.is_left)]),
        )

    def _tell(self, step: Step | RequestFailed | None) -> None:
        self._loop.call_soon_threadsafe(self.steps.put_nowait, step)


class _Choice(LogitsProcessor):
    """Chooses the token where `generate` would take the largest score, which it then makes it."""

    def __init__(self, sampler: Sampler, tell: Any) -> None:
        self._sampler = sampler
        self._tell = tell

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        step = self._sampler.choose(scores[0].float())
        self._tell(step)
        chosen = torch.full_like(scores, -torch.inf)
        chosen[0, step.token] = 0
        return chosen


class _Left(StoppingCriteria):
    def __init__(self, is_left: threading.Event) -> None:
        self._is_left = is_left

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return torch.full((input_ids.shape[0],), self._is_left.is_set(), device=input_ids.device)
