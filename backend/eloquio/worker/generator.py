"""What generates tokens, in a batch or one request after the other."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from eloquio.worker.sampling import Form, Sampler, Sampling, Step


@dataclass(frozen=True)
class Prompt:
    """Token ids, and what a processor made of pictures and sound beside them."""

    ids: Sequence[int]
    inputs: Mapping[str, Any] = field(default_factory=dict)


class Grammar(Protocol):
    def begin(self) -> Form: ...


@dataclass(frozen=True)
class Order:
    """One answer that is wanted."""

    prompt: Prompt
    sampling: Sampling
    end_ids: frozenset[int]
    """Each ends the answer, and is its last step."""
    max_new_tokens: int
    adapter: str | None
    grammar: Grammar | None = None
    """The form that the answer keeps to."""

    def sampler(self) -> Sampler:
        held = None if self.grammar is None else self.grammar.begin()
        return Sampler(self.sampling, self.prompt.ids, held)


class Generator(Protocol):
    def generate(self, order: Order) -> AsyncGenerator[Step]:
        """The answer's tokens as they are chosen; leaving it ends the work at the next step.

        Raises a RequestFailed for what went wrong with this answer.
        """
        ...
