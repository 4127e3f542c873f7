"""Continuous batching by transformers' own manager: all answers of a step share one pass."""

import asyncio
import itertools
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from transformers import GenerationConfig, LogitsProcessorList
from transformers.generation.configuration_utils import ContinuousBatchingConfig
from transformers.generation.continuous_batching.cb_logits_processors import (
    ContinuousBatchingLogitsProcessor,
    ContinuousBatchingLogitsProcessorList,
)
from transformers.generation.continuous_batching.continuous_api import ContinuousBatchingManager
from transformers.generation.continuous_batching.requests import GenerationOutput, RequestStatus

from eloquio.worker.failures import GenerationFailed, OutOfMemory, RequestFailed, is_out_of_memory
from eloquio.worker.generator import Order
from eloquio.worker.sampling import Step
from eloquio.worker.turns import ModelTurns

# Tokens of cache that are given at once.
_BLOCK_TOKENS = 64
# What a step reads of prompts: an answer under way waits no longer than that takes.
_STEP_TOKENS = {"cpu": 128, "cuda": 2048}


@dataclass(frozen=True)
class Room:
    """How much a batch holds: requests at once, and tokens of all of them together."""

    slots: int
    cache_tokens: int


class Batch:
    """The requests for one adapter. Made anew where a step has failed."""

    def __init__(self, model: Any, adapter: str | None, turns: ModelTurns, room: Room) -> None:
        self._model = model
        self._adapter = adapter
        self._turns = turns
        self._room = room
        self._numbers = itertools.count()
        self._answers: dict[str, _Answer] = {}
        self._manager: _Manager | None = None

    async def generate(self, order: Order) -> AsyncGenerator[Step]:
        name = str(next(self._numbers))
        answer = _Answer(order, asyncio.get_running_loop())
        self._answers[name] = answer
        manager = self._begin(name, answer, order)
        has_ended = False
        try:
            for number in range(1, order.max_new_tokens + 1):
                step = await answer.steps.get()
                if isinstance(step, RequestFailed):
                    raise step
                has_ended = step.token in order.end_ids or number == order.max_new_tokens
                yield step
                if has_ended:
                    return
        finally:
            del self._answers[name]
            if not has_ended:
                manager.forget(name)

    def _begin(self, name: str, answer: "_Answer", order: Order) -> "_Manager":
        """The manager that has taken the request: one that fails just now drops it in silence."""
        while True:
            manager = self._running_manager()
            manager.register_result_handler(name, answer.ends)
            manager.add_request(
                list(order.prompt.ids),
                request_id=name,
                max_new_tokens=order.max_new_tokens,
                eos_token_id=sorted(order.end_ids),
            )
            if manager.takes_requests:
                return manager
            manager.forget(name)

    def _running_manager(self) -> "_Manager":
        if self._manager is None or not self._manager.takes_requests:
            chooser = _Chooser(self._answers)
            self._manager = _Manager(
                self._model, chooser, self._room, lambda: self._turns.turn(self._adapter)
            )
            self._manager.start()
        return self._manager


class _Answer:
    """One request in the batch, as the event loop sees it."""

    def __init__(self, order: Order, loop: asyncio.AbstractEventLoop) -> None:
        self.sampler = order.sampler()
        self.loop = loop
        self.steps: asyncio.Queue[Step | RequestFailed] = asyncio.Queue()

    def ends(self, output: GenerationOutput) -> None:
        """Called in the loop when the manager is done with it; its steps have come before."""
        if output.status != RequestStatus.FAILED:
            return
        words = output.error or "it was given up"
        if is_out_of_memory(words):
            self.steps.put_nowait(OutOfMemory(f"the device had no room for the batch: {words}"))
        else:
            self.steps.put_nowait(GenerationFailed(f"the model failed: {words}"))


class _Chooser(ContinuousBatchingLogitsProcessor):
    """Chooses each request's token and tells it, at the place where the manager draws one for all.

    The manager takes the largest score, so a token that was drawn is made the largest.
    """

    supported_kwargs: ClassVar[dict[str, type]] = {}
    ignored_kwargs: tuple[str, ...] = ()

    def __init__(self, answers: dict[str, _Answer]) -> None:
        self._answers = answers
        self._rows: list[_Answer | None] = []

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        int32_tensor.zero_()

    def prepare_tensor_args(self, requests_with_new_token: Sequence[Any]) -> torch.Tensor:
        # One that has just been left is still in the batch for this step.
        self._rows = [
            self._answers.get(request.state.request_id) for request in requests_with_new_token
        ]
        return torch.zeros(len(self._rows), dtype=torch.int32)

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        largest = scores.argmax(dim=-1).tolist()
        told: list[tuple[_Answer, Step | RequestFailed]] = []
        for row, answer in enumerate(self._rows):
            if answer is None:
                continue
            if answer.sampler.is_plainly_greedy:
                told.append((answer, Step(largest[row])))
                continue
            try:
                step = answer.sampler.choose(scores[row])
            except RuntimeError as failure:
                # Of this request alone: the others' answers go on.
                told.append((answer, GenerationFailed(f"no token could be chosen: {failure}")))
                continue
            told.append((answer, step))
            scores[row, step.token] = torch.inf
        if told:
            told[0][0].loop.call_soon_threadsafe(_tell, told)
        return scores


def _tell(told: Sequence[tuple[_Answer, Step | RequestFailed]]) -> None:
    for answer, step in told:
        answer.steps.put_nowait(step)


class _Manager(ContinuousBatchingManager):
    """transformers' manager, with our choice of tokens, and a turn at the model for each step."""

    def __init__(
        self,
        model: Any,
        chooser: _Chooser,
        room: Room,
        turn: Callable[[], AbstractContextManager[None]],
    ) -> None:
        step_tokens = max(_STEP_TOKENS.get(model.device.type, 512), room.slots)
        # One more for each request: its last block is seldom full.
        blocks = -(-room.cache_tokens // _BLOCK_TOKENS) + room.slots
        super().__init__(
            model,
            # Nothing ends or draws by it: each request brings its own ends, and its own sampler.
            GenerationConfig(do_sample=False, eos_token_id=-1, max_new_tokens=None),
            ContinuousBatchingConfig(
                block_size=_BLOCK_TOKENS,
                num_blocks=blocks,
                max_batch_tokens=step_tokens,
                max_requests_per_batch=room.slots,
                # A graph can't hold a choice that is made in Python.
                use_cuda_graph=False,
                use_async_batching=False,
            ),
        )
        self._turn = turn
        self.logit_processor = ContinuousBatchingLogitsProcessorList(LogitsProcessorList([chooser]))
        self.logit_processor.tensors_required = 1

    @property
    def takes_requests(self) -> bool:
        """False from the moment at which a step has failed, before anybody is told so."""
        return self.is_running() and self.background_thread_status.can_accept_new_requests() is None

    def start(self) -> None:
        """In a thread that doesn't keep the process alive: there is nothing to be saved."""
        self.background_thread_status.clear()
        self._generation_thread = threading.Thread(target=self._run_generation_loop, daemon=True)
        self._generation_thread.start()

    def forget(self, request_id: str) -> None:
        """No step of the request follows, unless one is being computed."""
        self.cancel_request(request_id)
        with self.output_router._lock:
            self.output_router.result_handlers.pop(request_id, None)

    def _generation_step(self) -> None:
        with self._turn():
            super()._generation_step()


class Batches:
    """A batch for each adapter that is asked for: they take turns at the model, step by step."""

    def __init__(self, model: Any, turns: ModelTurns, room: Room) -> None:
        self._model = model
        self._turns = turns
        self._room = room
        self._batches: dict[str | None, Batch] = {}

    def generate(self, order: Order) -> AsyncGenerator[Step]:
        if order.adapter not in self._batches:
            batch = Batch(self._model, order.adapter, self._turns, self._room)
            self._batches[order.adapter] = batch
        return self._batches[order.adapter].generate(order)


def takes(model: Any) -> bool:
    """Whether the manager can run it: attention in all its layers, of the two kinds it knows."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    return (
        kinds <= {"full_attention", "sliding_attention"}
        and bool(getattr(model, "_supports_sdpa", False))
        and not getattr(model, "_is_stateful", False)
    )
