"""Makes an engine's process: its command line, its address, and what it has to do without."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import structlog

from eloquio.engines.address import Address, new_address
from eloquio.engines.facts import Facts
from eloquio.engines.kinds.blame import Blame
from eloquio.engines.kinds.kind import Kind
from eloquio.engines.kinds.llama_binary import FlagReader
from eloquio.engines.kinds.llama_server import LlamaServer
from eloquio.engines.kinds.worker import Worker
from eloquio.engines.log import LogRing
from eloquio.engines.process import EngineProcess
from eloquio.engines.spec import EngineSpec
from eloquio.errors import EloquioError, EngineStartFailed
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
        self._kind = _kind(spec, workplace)
        self._home = workplace.settings.home
        self._files = workplace.folder / name

    async def spawn(self, log: LogRing) -> Spawned:
        """A process at a fresh address; EngineStartFailed where the system makes none."""
        folder, name = self._files.parent, self._files.name
        address = await asyncio.to_thread(new_address, folder, name)
        try:
            start = await self._kind.prepare(address, self._files, self.without)
            pid_file = self._files.with_suffix(".pid")
            process = await EngineProcess.start(start.command, start.environment, log, pid_file)
        except OSError as failure:
            raise EngineStartFailed(
                f"The engine could not be started: {failure.strerror}."
            ) from failure
        return Spawned(process, address.client(), address)

    def hidden_folders(self) -> tuple[Path, ...]:
        """Those that are cut out of what the engine writes."""
        return (*self._kind.folders(), self._home)

    async def concede(self, status: int, lines: Sequence[str]) -> bool:
        """Whether it ended for a part that it can do without, which it does from now on."""
        blame = await asyncio.to_thread(self._kind.blamed, status, lines)
        if blame is None or blame in self.without:
            return False
        self.without |= {blame}
        logger.warning("engine_goes_without", model=self._spec.model, part=blame.option)
        return True

    def start_failure(self, status: int, lines: Sequence[str]) -> EloquioError:
        """Why it ended with `status` after `lines`. Searches them all: call it in a thread."""
        return self._kind.start_failure(status, lines)

    def warnings(self, facts: Facts, lines: Sequence[str]) -> list[str]:
        """What a person should know of the engine that started so."""
        found = self._kind.differences(facts, lines, self.without)
        return [*self._spec.warnings, *found]

    def remove_files(self) -> None:
        for suffix in (".sock", ".key", ".jinja", ".json"):
            self._files.with_suffix(suffix).unlink(missing_ok=True)


def _kind(spec: EngineSpec, workplace: Workplace) -> Kind:
    match spec.kind:
        case "llama_server":
            return LlamaServer(spec, workplace.settings, workplace.flag_reader)
        case "worker":
            return Worker(spec, workplace.settings)
