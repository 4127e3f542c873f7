"""The sampling a model's makers recommend: from its own files, else from a table of families."""

import csv
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from eloquio.engines.spec import Sampling
from eloquio.models.gguf import GgufHeader
from eloquio.models.json_file import Table, number

_SEPARATORS = re.compile(r"[\s_/:]+")


def recommended(names: Sequence[str], header: GgufHeader | None) -> Sampling:
    """A value the header tells wins over the family's; what neither tells is None.

    `names` are whatever the model is called, such as its id and display name. The family is that
    of the longest pattern of `sampling.csv` that begins a word in one of the names.
    """
    if header is not None:
        told = [header.name, header.text("general.basename")]
        names = [*names, *(name for name in told if name)]
    family = _family(names) or Sampling()
    return family if header is None else _merged(header, family)


def recommended_by_config(names: Sequence[str], config: Table) -> Sampling:
    """As `recommended`; `config` is what the model's own generation_config.json holds."""
    family = _family(names) or Sampling()

    def told(key: str, otherwise: float | None) -> float | None:
        value = number(config.get(key))
        return otherwise if value is None else value

    is_greedy = config.get("do_sample") is False
    return Sampling(
        temperature=0.0 if is_greedy else told("temperature", family.temperature),
        top_p=told("top_p", family.top_p),
        top_k=_top_k(told("top_k", family.top_k)),
        min_p=told("min_p", family.min_p),
        repetition_penalty=told("repetition_penalty", family.repetition_penalty),
        presence_penalty=family.presence_penalty,
    )


def _family(names: Iterable[str]) -> Sampling | None:
    normal = [_SEPARATORS.sub("-", name.casefold()) for name in names]
    matching = (
        (len(pattern), sampling)
        for pattern, sampling in _families().items()
        if any(_begins_a_word(pattern, name) for name in normal)
    )
    return max(matching, key=lambda match: match[0], default=(0, None))[1]


def _begins_a_word(pattern: str, name: str) -> bool:
    """`gemma-2` is in `gemma-2-9b` and `google-gemma-2`, but not in `gemma-27b` or `medgemma-2`.

    A pattern may go on in letters or in a point, as `glm-4` does in `glm-4.6`.
    """
    end = "(?![0-9])" if pattern[-1].isdigit() else ""
    return re.search(rf"(?<![a-z0-9.]){re.escape(pattern)}{end}", name) is not None


def _merged(header: GgufHeader, family: Sampling) -> Sampling:
    def told(key: str, otherwise: float | None) -> float | None:
        value = header.number(f"general.sampling.{key}")
        return otherwise if value is None else round(value, 6)

    return Sampling(
        temperature=told("temp", family.temperature),
        top_p=told("top_p", family.top_p),
        top_k=_top_k(told("top_k", family.top_k)),
        min_p=told("min_p", family.min_p),
        repetition_penalty=told("penalty_repeat", family.repetition_penalty),
        presence_penalty=family.presence_penalty,
    )


@cache
def _families() -> dict[str, Sampling]:
    text = (files("eloquio.models") / "sampling.csv").read_text("utf-8")
    families = {}
    for row in csv.DictReader(text.splitlines()):
        pattern = row.pop("pattern")
        values = {name: float(value) for name, value in row.items() if value}
        top_k = _top_k(values.pop("top_k", None))
        families[pattern] = Sampling(**values, top_k=top_k)
    return families


def _top_k(value: float | None) -> int | None:
    """Whole; families write -1 for no limit, which the engine calls 0."""
    return None if value is None else max(0, int(value))
