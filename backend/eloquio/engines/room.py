"""The room that models have: how much there is, and making more of it."""

import asyncio
from contextlib import suppress

from eloquio.engines import eviction
from eloquio.engines.devices import main_memory
from eloquio.engines.eviction import Placement
from eloquio.engines.inventory import Inventory
from eloquio.engines.ledger import Ledger
from eloquio.engines.loads import Terms
from eloquio.engines.roster import Roster
from eloquio.engines.spec import EngineSpec
from eloquio.errors import EngineBusy, ModelDoesNotFit

# A driver takes a while to give back what a process held that is gone.
_RETURN_SECONDS = 3.0
# What a model was planned with is an estimate; what it really held may be less.
_RETURN_SHARE = 0.8
_POLL_SECONDS = 0.1


class Room:
    def __init__(self, roster: Roster, inventory: Inventory) -> None:
        self._roster = roster
        self._inventory = inventory

    def ledger(self) -> Ledger:
        """What there is for models, with the accelerators as they were seen last."""
        promised_bytes = sum(engine.promised_bytes() for engine in self._roster.engines)
        return Ledger(main_memory(), self._inventory.devices_seen, promised_bytes)

    async def find(self, spec: EngineSpec, terms: Terms) -> Placement:
        """As `decide`, but what is leaving anyway is awaited before anything else has to yield."""
        if self._roster.is_anyone_leaving:
            with suppress(EngineBusy, ModelDoesNotFit):
                placement = self.decide(spec, terms)
                is_whole = placement.spec.context_length == spec.context_length
                if is_whole and not placement.evicted:
                    return placement
            await self._roster.removals()
        return self.decide(spec, terms)

    def decide(self, spec: EngineSpec, terms: Terms) -> Placement:
        """How `spec` gets its room; EngineBusy or ModelDoesNotFit where it can't have it."""
        return eviction.place(
            spec,
            self._roster.residents(spec.model),
            self.ledger().free_bytes,
            keep_others=terms.keep_others,
            force=terms.force,
        )

    async def make(self, placement: Placement) -> None:
        """Returns when what had to leave is gone and its memory is really back."""
        leaving = self._roster.named(placement.stop_first)
        for model in placement.evicted:
            self._roster.put_to_sleep(model)
        held_bytes = sum(engine.held_bytes() for engine in leaving)
        expected_bytes = self.ledger().free_bytes + _RETURN_SHARE * held_bytes
        await self._roster.remove_all(leaving)
        if not leaving or not self._inventory.devices_seen:
            return  # main memory is back when its process is gone
        with suppress(TimeoutError):
            async with asyncio.timeout(_RETURN_SECONDS):
                while self.ledger().free_bytes < expected_bytes:
                    await asyncio.sleep(_POLL_SECONDS)
                    await self._inventory.refresh()
