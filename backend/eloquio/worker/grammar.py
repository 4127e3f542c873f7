"""Answers that are held to a form: a JSON schema, or a grammar as llama.cpp writes them."""

import json
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import xgrammar

from eloquio.worker.failures import RequestFailed
from eloquio.worker.load import Loaded

_ANY_OBJECT = {"type": "object"}
# More than the longest mark of reasoning's end has, even letter by letter.
_LONGEST_END_TOKENS = 48


class Grammars:
    """Compiles for one model's tokens; what was compiled before is kept by the library."""

    def __init__(self, loaded: Loaded) -> None:
        self._size = int(loaded.config.get_text_config().vocab_size)
        tokens = xgrammar.TokenizerInfo.from_huggingface(
            loaded.tokenizer, vocab_size=self._size, stop_token_ids=sorted(loaded.end_ids)
        )
        self._compiler = xgrammar.GrammarCompiler(tokens)

    def asked_by(self, fields: Mapping[str, Any]) -> "Grammar | None":
        """What a request's fields hold the answer to. Raises RequestFailed for no right one."""
        schema, param = _schema_in(fields)
        try:
            if schema is not None:
                text = json.dumps(schema)
                # A small model that may break lines anywhere breaks them without an end.
                compiled = self._compiler.compile_json_schema(
                    text, any_whitespace=False, strict_mode=False
                )
                return Grammar(compiled, self._size)
            if rules := fields.get("grammar"):
                param = "grammar"
                return Grammar(self._compiler.compile_grammar(rules), self._size)
        except (RuntimeError, ValueError, TypeError) as error:
            raise RequestFailed(f"no grammar can be made of it: {error}", param=param) from error
        return None


@dataclass(frozen=True)
class Thinking:
    """What the model may write freely before its answer."""

    end: re.Pattern[str]
    decode: Callable[[list[int]], str]
    end_ids: frozenset[int]
    """None of them may come before the answer has."""


@dataclass(frozen=True)
class Grammar:
    """One form, for any number of answers."""

    compiled: Any
    vocabulary_size: int
    thinking: Thinking | None = None
    """None: the answer keeps to the form from its first token on."""

    def begin(self) -> "Held":
        matcher = xgrammar.GrammarMatcher(self.compiled)
        return Held(matcher, self.vocabulary_size, self.thinking)


class Held:
    """One answer on its way through the form."""

    def __init__(self, matcher: Any, vocabulary_size: int, thinking: Thinking | None) -> None:
        self._matcher = matcher
        self._mask = xgrammar.allocate_token_bitmask(1, vocabulary_size)
        self._thinking = thinking
        self._last: deque[int] = deque(maxlen=_LONGEST_END_TOKENS)

    def allowed(self, scores: torch.Tensor) -> torch.Tensor:
        """The scores with -inf for each token that can't come next."""
        if self._thinking is not None:
            open_ended = scores.clone()
            open_ended[sorted(self._thinking.end_ids)] = -torch.inf
            return open_ended
        if self._matcher.is_terminated():
            return scores
        self._matcher.fill_next_token_bitmask(self._mask)
        held = scores.clone().unsqueeze(0)
        xgrammar.apply_token_bitmask_inplace(held, self._mask.to(held.device))
        return held.squeeze(0)

    def accept(self, token: int) -> None:
        if self._thinking is not None:
            self._last.append(token)
            if self._thinking.end.search(self._thinking.decode(list(self._last))):
                self._thinking = None
        elif not self._matcher.is_terminated():
            self._matcher.accept_token(token)


def _schema_in(fields: Mapping[str, Any]) -> tuple[Any, str]:
    wanted = fields.get("response_format") or {}
    match wanted.get("type"):
        case "json_schema":
            return (wanted.get("json_schema") or {}).get("schema", _ANY_OBJECT), "response_format"
        case "json_object":
            return wanted.get("schema") or _ANY_OBJECT, "response_format"
        case None | "text":
            return fields.get("json_schema"), "json_schema"
        case other:
            raise RequestFailed(f"there is no format {other!r}", param="response_format")
