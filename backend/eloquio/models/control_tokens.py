"""The texts that an engine takes as tokens of their own, by which a template tells turns apart."""

import re
from pathlib import Path

from eloquio.models import tokenizer_files
from eloquio.models.gguf import find_arrays, opened, read_integers, read_strings

_TOKENS, _TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
_UNKNOWN, _CONTROL = 2, 3
# The engine takes such a token as a control token, whatever type the file gives it.
_BAR = "[|\N{FULLWIDTH VERTICAL LINE}]"
_MARKER = re.compile(
    rf"<{_BAR}[^\s<>]{{1,80}}>|<[^\s<>|]{{1,80}}{_BAR}>"
    r"|\[\|[^\s\[\]]{1,80}\|\]|<(?:start|end)_of_turn>"
)
# Without a token of their own they are a text, which the model was taught all the same.
_MARKER_OF_TEMPLATE = re.compile(rf"{_MARKER.pattern}|\[/?INST\]|<</?SYS>>")
# What a model says itself and templates look for in its messages, which begin no turn.
_SAID_BY_THE_MODEL = re.compile(
    r"</?(?:think|tool_call|tool_response|tool_calls|function)>|\[/?THINK\]"
)
_SHORTEST, _LONGEST = 3, 200


def read(model: Path, template: str) -> tuple[str, ...]:
    """Those of the vocabulary in `model` and of its chat template, in a fixed order.

    Takes about 0.1 s for a vocabulary of 152 000. Raises what reading its header would.
    """
    return _chosen(_of_template(template) | _of_vocabulary(model))


def of_folder(folder: Path, template: str | None) -> tuple[str, ...]:
    """Those of a tokenizer as Hugging Face's libraries save it; `template` in place of its own."""
    own = template or tokenizer_files.template(folder)
    added = tokenizer_files.added_tokens(folder)
    told = {text for text, is_control in added.items() if is_control or _MARKER.fullmatch(text)}
    return _chosen(_of_template(own) | told)


def _of_template(template: str) -> set[str]:
    return {match[0] for match in _MARKER_OF_TEMPLATE.finditer(template)}


def _chosen(found: set[str]) -> tuple[str, ...]:
    return tuple(
        sorted(
            text
            for text in found
            if _SHORTEST <= len(text) <= _LONGEST
            and not text.isspace()
            and not _SAID_BY_THE_MODEL.fullmatch(text)
        )
    )


def _of_vocabulary(model: Path) -> set[str]:
    with opened(model) as source:
        positions = find_arrays(source, (_TOKENS, _TYPES))
        if _TOKENS not in positions:
            return set()
        types = read_integers(source, positions[_TYPES]) if _TYPES in positions else ()
        special = {index for index, kind in enumerate(types) if kind in (_UNKNOWN, _CONTROL)}
        found: set[str] = set()
        for index, token in enumerate(read_strings(source, positions[_TOKENS])):
            if index in special or (token[:1] in (b"<", b"[") and _is_marker(token)):
                found.add(token.decode("utf-8", "replace"))
    return found


def _is_marker(token: bytes) -> bool:
    return _MARKER.fullmatch(token.decode("utf-8", "replace")) is not None
