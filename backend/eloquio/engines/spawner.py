"""Makes an engine's process: its command line, its address, and what it has to do without."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import structlog

from eloquio.engines.address import Address, new_address
from eloquio.engines.kinds import llama_server
from eloquio.engines.kinds.blame import Blame, blamed
from eloquio.engines.kinds.llama_server import Facts, FlagReader, Option
from eloquio.engines.log import LogRing
from eloquio.engines.process import EngineProcess
from eloquio.engines.spec import EngineSpec
from eloquio.errors import EngineStartFailed
from eloquio.settings import Settings

logger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Workplace:
    """What all engines of one backend share."""

    settings: Settings
    folder: Path
    flag_reader: FlagReader
    changed: Callable[[], None]


@dataclass(frozen=True)
class Spawned:
    process: EngineProcess
    client: aiohttp.ClientSession
    address: Address


class Spawner:
    """`name` is what the engine's files in the workplace are called, each with its own ending."""

    def __init__(
        self, spec: EngineSpec, workplace: Workplace, name: str, without: frozenset[Blame]
    ) -> None:
        self.without = without
        """What the engine failed on before, and does without since."""
        self._spec = spec
        self._workplace = workplace
        self._files = workplace.folder / name
        self._options: list[Option] = []
        self._flags: frozenset[str] = frozenset()

    async def spawn(self, log: LogRing) -> Spawned:
        """A process at a fresh address; EngineStartFailed where the system makes none."""
        binary = await asyncio.to_thread(llama_server.locate, self._workplace.settings)
        self._flags = await self._workplace.flag_reader.flags(binary)
        folder, name = self._files.parent, self._files.name
        address = await asyncio.to_thread(new_address, folder, name)
        try:
            self._options = await asyncio.to_thread(
                llama_server.options, self._spec, self._flags, address, self._files, self.without
            )
            command = llama_server.command(self._spec, binary, self._options)
            environment = llama_server.environment(binary, os.environ)
            pid_file = self._files.with_suffix(".pid")
            process = await EngineProcess.start(command, environment, log, pid_file)
        except OSError as failure:
            raise EngineStartFailed(
                f"The engine could not be started: {failure.strerror}."
            ) from failure
        return Spawned(process, address.client(), address)

    async def concede(self, status: int, lines: Sequence[str]) -> bool:
        """Whether it ended for a part that it can do without, which it does from now on."""
        blame = await asyncio.to_thread(blamed, lines, status, self._options)
        if blame is None or blame in self.without:
            return False
        if not llama_server.can_do_without(self._spec, blame, self._flags):
            return False
        self.without |= {blame}
        logger.warning("engine_goes_without", model=self._spec.model, part=blame.option)
        return True

    def warnings(self, facts: Facts, lines: Sequence[str]) -> list[str]:
        """What a person should know of the engine that started so."""
        found = llama_server.differences(self._spec, facts, lines, self.without)
        return [*self._spec.warnings, *found]

    def remove_files(self) -> None:
        for suffix in (".sock", ".key", ".jinja"):
            self._files.with_suffix(suffix).unlink(missing_ok=True)
