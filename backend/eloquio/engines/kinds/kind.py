"""What there is to know of an engine before it is a process, and of the words it leaves behind."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from eloquio.engines.address import Address
from eloquio.engines.facts import Facts
from eloquio.engines.kinds.blame import Blame
from eloquio.errors import EloquioError


@dataclass(frozen=True)
class Start:
    """What a process is started with."""

    command: list[str]
    environment: dict[str, str]


class Kind(Protocol):
    """One way to run a model; made for each engine. Only `prepare` may be slow."""

    async def prepare(self, address: Address, files: Path, without: frozenset[Blame]) -> Start:
        """Its start at `address`, less what it failed on before.

        What it needs in files is written: `files` and an ending, for this user alone.
        """

    def folders(self) -> Sequence[Path]:
        """Those that its lines may name and nobody need know."""

    def blamed(self, status: int, lines: Sequence[str]) -> Blame | None:
        """What it ended for with `status` after `lines`, if it can be started without that."""

    def start_failure(self, status: int, lines: Sequence[str]) -> EloquioError:
        """Why it ended while it was starting."""

    def differences(
        self, facts: Facts, lines: Sequence[str], without: frozenset[Blame]
    ) -> list[str]:
        """What it made of what was asked, where that isn't the same: sentences for a person."""


def key_file(address: Address, files: Path) -> Path:
    """The written file with the key that the engine asks for.

    In a file: an argument list can be read by every user of the machine.
    """
    path = files.with_suffix(".key")
    path.touch(mode=0o600)
    path.write_text(address.key)
    return path
