"""Which Eloquio this is."""

from functools import cache
from importlib.metadata import version


@cache
def own_version() -> str:
    return version("eloquio")
