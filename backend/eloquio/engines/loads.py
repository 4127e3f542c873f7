"""A load: what is asked for, on which terms, and how far it is."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from eloquio.engines.spec import EngineSpec

if TYPE_CHECKING:
    from eloquio.engines.engine import Engine

Plan = Callable[[], Awaitable[EngineSpec]]


class Planner(Protocol):
    """Knows the models on disk."""

    async def id_of(self, model: str) -> str:
        """The public id of the model that a request names."""

    async def plan_by_name(self, model: str) -> EngineSpec:
        """The engine for a request that names a model which isn't loaded."""


@dataclass(frozen=True)
class Terms:
    """What a load may do to others, and how long its model stays."""

    keep_others: bool = False
    force: bool = False
    """Ends the answers under way on models that have to make room."""
    ttl_seconds: float | None = None
    """None as the settings say, 0 never."""
    is_pinned: bool = False
    is_for_request: bool = False
    """Nobody loads it but a request that names it: held back after failures."""


DEFAULT_TERMS = Terms()


@dataclass(eq=False)
class Load:
    """One load, from its planning to its end. `spec` is there once it is planned."""

    asked: str
    terms: Terms
    spec: EngineSpec | None = None
    is_placed: bool = False
    waits_for: str = ""
    """In a sentence, what has to be there before it can be placed; empty if all is."""
    planned: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    """Set once it is known what it means, or that it means nothing."""
    task: "asyncio.Task[tuple[Engine, bool]]" = field(init=False, repr=False)

    @property
    def model(self) -> str:
        return self.asked if self.spec is None else self.spec.model

    def is_like(self, other: "Load") -> bool:
        """Whether it does for `other` all that was asked."""
        mine, others = self.terms, other.terms
        same_terms = (mine.keep_others, mine.force) == (others.keep_others, others.force)
        return self.spec == other.spec and same_terms
