"""What was measured, as lines of text, and the goals that it is held against."""

import os
import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_END = "<!-- end of figures -->\n"
_GIB = 2**30


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    unit: str = ""
    digits: int = 0
    at_most: float | None = None
    """The goal, where there is one."""
    at_least: float | None = None

    def line(self) -> str:
        return f"{self.name:48} {self.value:8.{self.digits}f} {self.unit}".rstrip()

    @property
    def goal(self) -> str:
        """In words; empty where there is none."""
        if self.at_most is not None:
            return f"{self.at_most:g} {self.unit} or less".replace("  ", " ")
        if self.at_least is not None:
            return f"{self.at_least:g} {self.unit} or more".replace("  ", " ")
        return ""

    @property
    def is_reached(self) -> bool:
        return (self.at_most is None or self.value <= self.at_most) and (
            self.at_least is None or self.value >= self.at_least
        )


def block(figures: Sequence[Figure], command: str) -> str:
    """The figures as they stand in the documentation, with what made them and where."""
    lines = [f"Made by `{command}` on {machine()}:", "", "```"]
    lines += [figure.line() for figure in figures]
    lines += ["```", "", "| goal | wanted | reached there |", "|---|---|---|"]
    lines += [_row(figure) for figure in figures if figure.goal]
    return "\n".join([*lines, ""])


def write(path: Path, name: str, text: str) -> None:
    """Put `text` where the document has the figures of that name."""
    begin = f"<!-- {name} -->\n"
    before, rest = path.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(_END, 1)
    path.write_text(f"{before}{begin}{text}{_END}{after}", encoding="utf-8")


def machine() -> str:
    """What may be told of this machine: its processor, cores, memory and Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB
    return (
        f"{os.cpu_count()} cores of {_processor(_told_of_processor())} with {memory:.0f} GiB, "
        f"{platform.system()}, Python {platform.python_version()}"
    )


def _row(figure: Figure) -> str:
    told = "yes" if figure.is_reached else f"no: {figure.line().removeprefix(figure.name).strip()}"
    return f"| {figure.name} | {figure.goal} | {told} |"


def _told_of_processor() -> Iterable[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ()


def _processor(lines: Iterable[str]) -> str:
    for line in lines:
        if match := re.match(r"model name\s*:\s*(.+)", line):
            return match[1]
    return platform.machine()
