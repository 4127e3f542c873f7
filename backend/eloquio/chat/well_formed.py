"""What Python's parser of JSON lets through and the engine's, or we ourselves, would fail at."""

from collections.abc import Mapping
from math import isfinite

from eloquio.errors import InvalidRequest

# Far below what Python's own stack bears, and far above what a tool's schema needs.
_MOST_LEVELS = 100


def refuse_what_json_cannot_carry(fields: Mapping[str, object]) -> None:
    """InvalidRequest for half a surrogate pair, an endless number or nesting, in any of `fields`.

    Costs nothing by the length of a text in ASCII, such as a picture.
    """
    for name, value in fields.items():
        reason = _fault(name) or _fault(value)
        if reason:
            shown = name if name.isascii() else None
            where = f"{shown}: " if shown else ""
            raise InvalidRequest(f"The request isn't right. {where}{reason}", param=shown)


def _fault(value: object) -> str | None:
    level: list[object] = [value]
    for _ in range(_MOST_LEVELS):
        below: list[object] = []
        for one in level:
            if isinstance(one, str):
                if not one.isascii() and not _is_unicode(one):
                    return "A text holds half of a surrogate pair, which is no character."
            elif isinstance(one, dict):
                below += one.keys()
                below += one.values()
            elif isinstance(one, list):
                below += one
            elif isinstance(one, int | float) and not _is_finite(one):
                return "A number is too large, or is none."
        if not below:
            return None
        level = below
    return f"It is nested more than {_MOST_LEVELS} levels deep."


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
