"""A case: one thing that a client may rely on, tried on one target."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from conformance.target import Target

Need = Literal[
    "agents",
    "completions",
    "embeddings",
    "logit_bias",
    "logprobs",
    "messages",
    "node",
    "responses",
    "schema",
    "status",
    "thinking",
    "tokenize",
    "tools",
]
"""What not every engine, or not every machine, has. A target that lacks it isn't tried."""

NEEDS: tuple[Need, ...] = get_args(Need)

Trial = Callable[[Target], None]


@dataclass(frozen=True)
class Case:
    name: str
    """The group it is of, and a sentence: `chat/an_answer_is_whole`."""
    trial: Trial
    """Asks, and fails as an assertion does."""
    needs: frozenset[Need]

    @property
    def group(self) -> str:
        return self.name.partition("/")[0]


class Cases:
    """The cases of one group, in the order of their definition."""

    def __init__(self, group: str, *needs: Need) -> None:
        """`needs` are those of every one of them."""
        self._group = group
        self._needs = frozenset(needs)
        self.all: list[Case] = []

    def case(self, *needs: Need) -> Callable[[Trial], Trial]:
        """The function below is one."""

        def take(trial: Trial) -> Trial:
            self.add(trial.__name__, trial, *needs)
            return trial

        return take

    def each(self, table: Mapping[str, Any], *needs: Need) -> Callable[..., Callable[..., None]]:
        """The function below is one for each row; it gets the row's values too."""

        def take(trial: Callable[..., None]) -> Callable[..., None]:
            for name, row in table.items():
                self.add(f"{trial.__name__}[{name}]", _with_row(trial, row), *needs)
            return trial

        return take

    def add(self, name: str, trial: Trial, *needs: Need) -> None:
        self.all.append(Case(f"{self._group}/{name}", trial, self._needs | set(needs)))


def _with_row(trial: Callable[..., None], row: Any) -> Trial:
    values = row if isinstance(row, tuple) else (row,)
    return lambda target: trial(target, *values)
