"""Which llama-server there is, and which accelerators it sees."""

import asyncio
import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from eloquio.engines.devices import Device, nvidia_devices, parse_list_devices
from eloquio.engines.kinds import llama_binary
from eloquio.errors import EloquioError, EngineMissing
from eloquio.settings import Settings

# Long enough that a page which asks every second starts no process each time, short enough that
# the free memory it shows is true.
_FRESH_SECONDS = 10.0


@dataclass(frozen=True)
class Build:
    """A llama-server, as far as it can be asked: `problem` says why it can't."""

    source: str
    version: str | None
    devices: tuple[Device, ...] = ()
    cards: tuple[Device, ...] = ()
    """NVIDIA's, as their driver tells of them, whether this llama-server can use them or not."""
    problem: EloquioError | None = None


class Inventory:
    """Asks the engine's program, and remembers its answer for a while."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._known: Build | None = None
        self._known_since = 0.0
        # So that those who ask at once start one process, not one each.
        self._asking = asyncio.Lock()

    async def build(self) -> Build:
        """The llama-server that a load would start; EngineMissing if there is none."""
        async with self._asking:
            now = self._clock()
            if self._known is None or now - self._known_since > _FRESH_SECONDS:
                self._known = await self._ask()
                self._known_since = now
            return self._known

    @property
    def devices_seen(self) -> tuple[Device, ...]:
        """The accelerators as they were when somebody asked last; none before that."""
        return () if self._known is None else self._known.devices

    async def refresh(self) -> None:
        """Has the accelerators' free memory read anew; without any, there is nothing to read."""
        if self._known is not None and not self.devices_seen:
            return
        self._known_since = -math.inf
        with suppress(EngineMissing):
            await self.build()

    async def _ask(self) -> Build:
        binary = await asyncio.to_thread(llama_binary.locate, self._settings)
        try:
            version = _version(await llama_binary.run(binary, "--version"))
            devices = parse_list_devices(await llama_binary.run(binary, "--list-devices"))
        except EloquioError as problem:
            return Build(binary.source, version=None, problem=problem)
        cards = await asyncio.to_thread(nvidia_devices)
        return Build(binary.source, version, tuple(devices), tuple(cards))


def _version(text: str) -> str | None:
    """What it calls itself: a version, and the build and commit of llama.cpp."""
    found = re.search(r"^version:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else None
