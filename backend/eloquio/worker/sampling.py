"""The next token of each request in a batch, chosen by that request's own fields."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

# Of a vocabulary of 150 000 tokens, sorting this many candidates is 50 times as fast as all.
_CANDIDATES = 1024


@dataclass(frozen=True)
class Sampling:
    """Fields as OpenAI and transformers mean them; the defaults change nothing.

    temperature 0 is greedy; top_k 0 and top_p 1 take all; repetition_penalty counts the prompt's
    tokens too, frequency and presence only the answer's.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    top_logprobs: int | None = None
    """How many alternatives are told beside the chosen token; None tells no probability."""

    @property
    def is_plainly_greedy(self) -> bool:
        """Whether the largest logit is the answer."""
        return (
            self.temperature == 0
            and self.repetition_penalty == 1
            and self.frequency_penalty == 0
            and self.presence_penalty == 0
            and not self.logit_bias
            and self.top_logprobs is None
        )


@dataclass(frozen=True)
class Step:
    """One token of an answer. Log probabilities are natural, of the model's own distribution."""

    token: int
    logprob: float | None = None
    alternatives: tuple[tuple[int, float], ...] = ()


class Form(Protocol):
    """What an answer is held to, as far as it has come."""

    def allowed(self, scores: torch.Tensor) -> torch.Tensor: ...

    def accept(self, token: int) -> None: ...


class Sampler:
    """Chooses one request's tokens, one after the other."""

    def __init__(
        self, sampling: Sampling, prompt: Sequence[int], held: "Form | None" = None
    ) -> None:
        """`held`: the form that the answer keeps to."""
        self.sampling = sampling
        self._held = held
        self._said: Counter[int] = Counter()
        self._seen = set(prompt) if sampling.repetition_penalty != 1 else set()
        self._generator: torch.Generator | None = None

    @property
    def is_plainly_greedy(self) -> bool:
        return self._held is None and self.sampling.is_plainly_greedy

    def choose(self, logits: torch.Tensor) -> Step:
        """`logits`: float32 of the size of the vocabulary; it is not changed."""
        sampling = self.sampling
        scores = self._penalised(logits)
        token = int(scores.argmax()) if sampling.temperature == 0 else self._drawn(scores)
        self._said[token] += 1
        if self._held is not None:
            self._held.accept(token)
        if sampling.repetition_penalty != 1:
            self._seen.add(token)
        if sampling.top_logprobs is None:
            return Step(token)
        logprobs = torch.log_softmax(logits, dim=-1)
        top = torch.topk(logprobs, sampling.top_logprobs) if sampling.top_logprobs else None
        columns = () if top is None else (top.indices.tolist(), top.values.tolist())
        alternatives = tuple(zip(*columns, strict=True))
        return Step(token, float(logprobs[token]), alternatives)

    def _penalised(self, logits: torch.Tensor) -> torch.Tensor:
        sampling = self.sampling
        scores = logits
        if self._seen:
            index = torch.tensor(sorted(self._seen), device=logits.device)
            seen = scores[index]
            penalty = sampling.repetition_penalty
            scores = scores.clone()
            scores[index] = torch.where(seen > 0, seen / penalty, seen * penalty)
        if self._said and (sampling.frequency_penalty or sampling.presence_penalty):
            index = torch.tensor(list(self._said), device=logits.device)
            times = torch.tensor(list(self._said.values()), device=logits.device)
            scores = scores.clone()
            scores[index] -= sampling.presence_penalty + sampling.frequency_penalty * times
        if sampling.logit_bias:
            index = torch.tensor(list(sampling.logit_bias), device=logits.device)
            bias = torch.tensor(list(sampling.logit_bias.values()), device=logits.device)
            scores = scores.clone()
            scores[index] += bias
        return scores if self._held is None else self._held.allowed(scores)

    def _drawn(self, scores: torch.Tensor) -> int:
        sampling = self.sampling
        scores = scores / sampling.temperature
        kept, tokens = self._candidates(scores)
        probabilities = torch.softmax(kept, dim=-1)
        chosen = torch.multinomial(probabilities, 1, generator=self._random(scores.device))
        return int(tokens[chosen])

    def _candidates(self, scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The scores that may be drawn, the largest first, and their tokens."""
        sampling = self.sampling
        size = scores.shape[-1]
        cut = sampling.top_k if 0 < sampling.top_k < size else 0
        if not cut and sampling.top_p >= 1 and not sampling.min_p:
            return scores, torch.arange(size, device=scores.device)
        count = cut or min(size, _CANDIDATES)
        while True:
            kept, tokens = torch.topk(scores, count)
            total = torch.logsumexp(kept if cut else scores, dim=-1)
            shares = torch.exp(kept - total)
            keep = torch.ones_like(shares, dtype=torch.bool)
            if sampling.top_p < 1:
                # The first that reaches the sum still belongs to it.
                keep &= shares.cumsum(-1) - shares < sampling.top_p
            if sampling.min_p:
                keep &= shares >= sampling.min_p * shares[0]
            keep[0] = True
            if cut or count == size or not bool(keep[-1]):
                return kept[keep], tokens[keep]
            count = size

    def _random(self, device: torch.device) -> torch.Generator | None:
        if self.sampling.seed is None:
            return None
        if self._generator is None:
            self._generator = torch.Generator(device=device)
            # Seeds may be negative here; a generator takes 64 bits.
            self._generator.manual_seed(self.sampling.seed % 2**63)
        return self._generator


def sampling_of(fields: Mapping[str, Any], recommended: Mapping[str, float | None]) -> Sampling:
    """A request's fields, those it leaves out as recommended, else transformers' defaults."""

    def value(name: str, default: float, *others: str) -> float:
        for candidate in (name, *others):
            if (given := fields.get(candidate)) is not None:
                return float(given)
        recommendation = recommended.get(name)
        return default if recommendation is None else recommendation

    wants_logprobs = fields.get("logprobs")
    told = fields.get("top_logprobs")
    if isinstance(wants_logprobs, int) and not isinstance(wants_logprobs, bool):
        # As a completion without a chat has it: the number itself.
        wants_logprobs, told = True, wants_logprobs
    return Sampling(
        temperature=value("temperature", 1.0),
        top_k=max(0, int(value("top_k", 0))),
        top_p=value("top_p", 1.0),
        min_p=value("min_p", 0.0),
        repetition_penalty=value("repetition_penalty", 1.0, "repeat_penalty"),
        frequency_penalty=value("frequency_penalty", 0.0),
        presence_penalty=value("presence_penalty", 0.0),
        logit_bias={int(t): float(b) for t, b in (fields.get("logit_bias") or {}).items()},
        seed=fields.get("seed"),
        top_logprobs=(told or 0) if wants_logprobs else None,
    )
