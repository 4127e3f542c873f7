"""The small files beside a model's weights that say how it is talked to."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from eloquio.errors import EloquioError
from eloquio.models.json_file import Table, read_table, table, text

_ADDED = '"added_tokens":'
# They stand before the vocabulary.
_LOOKED_AT = 4 * 1024 * 1024
_MOST_TEMPLATE_BYTES = 2_000_000


def template(folder: Path) -> str:
    """The model's chat template; empty where it has none."""
    own = folder / "chat_template.jinja"
    with suppress(OSError, UnicodeDecodeError):
        if own.stat().st_size <= _MOST_TEMPLATE_BYTES:
            return own.read_text("utf-8")
    for name in ("tokenizer_config.json", "chat_template.json", "processor_config.json"):
        told = table_or_empty(folder / name).get("chat_template")
        if found := _one_of(told):
            return found
    return ""


def added_tokens(folder: Path) -> dict[str, bool]:
    """The texts that the tokenizer takes whole, and of each whether it is a control token."""
    config = table_or_empty(folder / "tokenizer_config.json")
    described = [*table(config.get("added_tokens_decoder")).values(), *_of_tokenizer(folder)]
    found: dict[str, bool] = {}
    for token in map(table, described):
        if content := text(token.get("content")):
            found[content] = found.get(content, False) or token.get("special") is True
    return found


def table_or_empty(path: Path) -> Table:
    """What a file says that may as well not be there."""
    try:
        return read_table(path)
    except EloquioError:
        return {}


def _one_of(told: object) -> str | None:
    """A template, or of several named ones that for a plain chat."""
    if isinstance(told, list):
        named = {t["name"]: t.get("template") for t in map(table, told) if text(t.get("name"))}
        told = named.get("default")
    return text(told)


def _of_tokenizer(folder: Path) -> Iterator[object]:
    """Those of tokenizer.json, without its vocabulary being read."""
    try:
        with (folder / "tokenizer.json").open("rb") as file:
            start = file.read(_LOOKED_AT).decode("utf-8", "ignore")
    except OSError:
        return
    _, found, rest = start.partition(_ADDED)
    if found:
        with suppress(ValueError, RecursionError):
            tokens, _ = json.JSONDecoder().raw_decode(rest.lstrip())
            yield from tokens if isinstance(tokens, list) else ()
