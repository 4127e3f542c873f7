"""The small JSON files beside a model's weights."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eloquio.errors import ModelConfigInvalid, ModelFileMissing, ModelFileUnreadable
from eloquio.models.byte_source import shown_name

Table = Mapping[str, Any]
# The largest are indices of thousands of tensors, and tokenizers' tables of added tokens.
_MAX_BYTES = 32 * 1024 * 1024


def read_table(path: Path) -> Table:
    """The file's object. ModelFileMissing, ModelFileUnreadable or ModelConfigInvalid, by name."""
    name = shown_name(path.name)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ModelConfigInvalid(f"{name} is absurdly large.")
        parsed = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise ModelFileMissing(f"There is no file {name}.") from error
    except OSError as error:
        reason = error.strerror or "read error"
        raise ModelFileUnreadable(f"{name} can't be read: {reason}.") from error
    except (ValueError, RecursionError) as error:
        raise ModelConfigInvalid(f"{name} isn't JSON.") from error
    if not isinstance(parsed, dict):
        raise ModelConfigInvalid(f"{name} isn't an object.")
    return parsed


def table(value: object) -> Table:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def texts(value: object) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


def count(value: object) -> int | None:
    """A number of things: whole, and neither negative nor larger than any model has."""
    return value if type(value) is int and 0 <= value < 1 << 40 else None


def number(value: object) -> float | None:
    """A finite one; true and false are none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e15 else None  # type: ignore[arg-type]
