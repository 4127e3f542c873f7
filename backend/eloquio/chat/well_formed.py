"""What Python's parser of JSON lets through and the engine's, or we ourselves, would fail at."""

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

from eloquio.errors import InvalidRequest

# Far below what Python's own stack bears, and far above what a tool's schema needs.
_MOST_LEVELS = 100
_MOST_BRACKETS = 200
# Texts that an engine parses: a call's arguments, a schema's pattern, a grammar.
_PARSED = ("arguments", "pattern", "grammar")
_OPENING = "([{"
_BRACKETS = re.compile(r"[()\[\]{}]")


class WellFormed(dict[str, Any]):
    """The fields of a request that were looked through once, which need not be again."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "WellFormed":
        refuse_what_json_cannot_carry(fields)
        return cls(fields)


def refuse_what_json_cannot_carry(fields: Mapping[str, object]) -> None:
    """InvalidRequest for half a surrogate pair, an endless number or nesting, in any of `fields`.

    Costs nothing by the length of a text in ASCII, such as a picture.
    """
    if isinstance(fields, WellFormed):
        return
    for name, value in fields.items():
        reason = _fault({name: value})
        if reason:
            shown = name if name.isascii() else None
            where = f"{shown}: " if shown else ""
            raise InvalidRequest(f"The request isn't right. {where}{reason}", param=shown)


def _fault(value: object) -> str | None:
    level: list[object] = [value]
    # The name of a field is a level of its own here.
    for _ in range(_MOST_LEVELS + 1):
        below: list[object] = []
        for one in level:
            if isinstance(one, str):
                if not one.isascii() and not _is_unicode(one):
                    return "A text holds half of a surrogate pair, which is no character."
            elif isinstance(one, dict):
                if any(_is_too_deep(text) for name, text in one.items() if name in _PARSED):
                    return f"A text is nested more than {_MOST_BRACKETS} levels deep."
                below += one.keys()
                below += one.values()
            elif isinstance(one, list):
                below += one
            elif isinstance(one, int | float) and not _is_finite(one):
                return "A number is infinite, none, or too large."
        if not below:
            return None
        level = below
    return f"It is nested more than {_MOST_LEVELS} levels deep."


def _is_too_deep(text: object) -> bool:
    """An engine's parser goes as deep as the text does, and ends with its process."""
    if not isinstance(text, str) or sum(map(text.count, _OPENING)) <= _MOST_BRACKETS:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in _OPENING else -1
        if depth > _MOST_BRACKETS:
            return True
    return False


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_finite(number: float) -> bool:
    try:
        return isfinite(number)
    except OverflowError:
        return False
