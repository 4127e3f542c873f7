"""Models that write down a sound without saying when, in which language or how: Moonshine, say."""

import threading
from typing import Any

import numpy as np
import torch

from eloquio.worker.failures import RequestFailed
from eloquio.worker.left import once_left
from eloquio.worker.listen import Heard, Segment, Wishes
from eloquio.worker.load import Loaded
from eloquio.worker.sound import Samples

_SECONDS = 30.0
# A long sound is cut where it is quietest, near the end of what is heard at once.
_CUT_SECONDS = 6.0
_QUIET_SECONDS = 0.2
_TOKENS_PER_SECOND = 20


class PlainListener:
    """One request's. RequestFailed for what such a model has no way to do."""

    seconds = _SECONDS

    def __init__(self, loaded: Loaded, wishes: Wishes) -> None:
        name = loaded.plan.model
        asked = {
            "language": (wishes.language, "be told a language"),
            "prompt": (wishes.prompt, "be told what came before"),
            "timestamp_granularities": (wishes.wants_words, "tell when a word is said"),
        }
        for field, (is_asked, what) in asked.items():
            if is_asked:
                raise RequestFailed(f"{name} can't {what}", param=field)
        if wishes.task == "translate":
            raise RequestFailed(
                f"{name} writes down what is said, and can't translate", param="model"
            )
        self._model = loaded.model
        self._processor = loaded.processor
        self._temperature = wishes.temperature
        self.rate: int = loaded.processor.feature_extractor.sampling_rate

    def hear(self, samples: Samples, is_left: threading.Event) -> Heard:
        if len(samples) >= _SECONDS * self.rate:
            samples = samples[: quiet_end(samples, self.rate)]
        seconds = len(samples) / self.rate
        inputs = {
            name: _on(value, self._model)
            for name, value in self._processor(
                samples, sampling_rate=self.rate, return_tensors="pt"
            ).items()
        }
        held = getattr(
            self._model.config.get_text_config(decoder=True), "max_position_embeddings", 448
        )
        drawn = {"do_sample": True, "temperature": self._temperature} if self._temperature else {}
        tokens = self._model.generate(
            **inputs,
            max_new_tokens=min(held - 1, int(_TOKENS_PER_SECOND * seconds) + 16),
            stopping_criteria=once_left(is_left),
            **(drawn or {"do_sample": False}),
        )
        text = self._processor.batch_decode(tokens, skip_special_tokens=True)[0].strip()
        if not text:
            return Heard((), seconds)
        said = Segment(f" {text}", 0.0, seconds, tuple(tokens[0].tolist()), self._temperature)
        return Heard((said,), seconds)


def quiet_end(samples: Samples, rate: int) -> int:
    """Where in the last seconds a cut goes through the fewest words."""
    step = int(_QUIET_SECONDS * rate)
    first = max(0, len(samples) - int(_CUT_SECONDS * rate))
    steps = (len(samples) - first) // step
    if steps < 2:
        return len(samples)
    parts = samples[first : first + steps * step].reshape(steps, step)
    quietest = int(np.square(parts, dtype=np.float64).mean(axis=1).argmin())
    return first + quietest * step + step // 2


def _on(value: Any, model: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(model.device, model.dtype if value.is_floating_point() else value.dtype)
