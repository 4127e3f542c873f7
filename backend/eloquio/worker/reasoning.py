"""What a model thinks, told apart from what it says."""

import re
from dataclasses import dataclass, replace
from typing import Literal

from eloquio.worker.pieces import Content, Piece, Reasoning
from eloquio.worker.search import Search


@dataclass(frozen=True)
class Tags:
    """Reasoning stands between two tags, in front of what is said."""

    open: str
    close: str
    dropped: tuple[str, ...] = ()
    """Tags around what is said."""
    is_open: bool = False
    """The prompt has opened it already, so that only the end is to come."""


@dataclass(frozen=True)
class Harmony:
    """gpt-oss's channels. `begun` is the message that the prompt has begun, its header at least."""

    begun: str = ""


ReasoningForm = Tags | Harmony | None
"""None: the model doesn't reason apart."""

_FINAL_BEGINS = re.compile(r"<\|channel\|>final[^<]*(<\|constrain\|>[^<]*)?<\|message\|>")
# Those that are particular before those that a template may mention by the way.
_TAGS = (
    Tags("<|channel>thought", "<channel|>"),  # Gemma 4
    Tags("<seed:think>", "</seed:think>"),
    Tags("[THINK]", "[/THINK]"),  # Magistral
    Tags(
        "<|begin_of_thought|>",
        "<|end_of_thought|>",
        ("<|begin_of_solution|>", "<|end_of_solution|>"),
    ),
    Tags("<|START_THINKING|>", "<|END_THINKING|>", ("<|START_RESPONSE|>", "<|END_RESPONSE|>")),
    Tags("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
    Tags("◁think▷", "◁/think▷"),  # Kimi
    Tags("<think>", "</think>", ("<response>", "</response>")),  # most; <response> is Granite's
    Tags("<thinking>", "</thinking>"),
    Tags("<thought>", "</thought>"),
    Tags("<reasoning>", "</reasoning>", ("<answer>", "</answer>")),
    Tags(
        "Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", ("[END FINAL RESPONSE]",)
    ),  # Apriel
    Tags("Here is my thought process:", "Here is my response:"),  # Granite 3.2
)


def reasoning_form(template: str, prompt: str, continued: str = "") -> ReasoningForm:
    """How the model shows what it thinks, by its chat template and the prompt that came of it.

    `continued` is the beginning of the answer with which the prompt ends, where it has one. Tags
    elsewhere in the prompt are words of a message.
    """
    if is_harmony(template):
        _, found, begun = prompt.rpartition("<|start|>")
        return Harmony(begun if found else "")
    tags = _tags_of(template)
    if tags is None:
        return None
    end = continued if tags.open in continued else prompt
    _, found, inside = end.rpartition(tags.open)
    is_inside = tags.close not in inside if end is continued else not inside.strip()
    return replace(tags, is_open=bool(found) and is_inside)


def end_of_reasoning(form: ReasoningForm) -> re.Pattern[str] | None:
    """What stands between reasoning that has begun and what is said; None where none has begun."""
    match form:
        case Harmony():
            return _FINAL_BEGINS
        case Tags(is_open=True):
            return re.compile(re.escape(form.close))
        case _:
            return None


def is_harmony(template: str) -> bool:
    return "<|channel|>" in template and "<|message|>" in template


def shows_reasoning(template: str) -> bool:
    """Whether a model with this template has a way to reason apart from its answer."""
    return is_harmony(template) or _tags_of(template) is not None


def _tags_of(template: str) -> Tags | None:
    for tags in _TAGS:
        if tags.close in template or tags.open in template:
            used = tuple(tag for tag in tags.dropped if tag in template)
            return replace(tags, dropped=used)
    return None


class ReasoningParser:
    """Splits a text that comes in pieces. White space between reasoning and answer is left out.

    A tag counts where reasoning may begin: at the start, or after other reasoning. In what is said
    it is a word like any other.
    """

    def __init__(self, tags: Tags) -> None:
        self._tags = tags
        self._state: Literal["start", "opened", "reasoning", "closed", "content"] = (
            "opened" if tags.is_open else "start"
        )
        self._held = ""
        self._close = Search([tags.close])
        self._dropped = Search(tags.dropped)

    def feed(self, text: str) -> list[Piece]:
        pieces: list[Piece] = []
        while text:
            match self._state:
                case "start" | "opened" | "closed":
                    text = self._feed_beginning(text, pieces)
                case "reasoning":
                    text = self._feed_reasoning(text, pieces)
                case "content":
                    text = self._feed_content(text, pieces)
        return [piece for piece in pieces if not isinstance(piece, Content) or piece.text]

    def end(self) -> list[Piece]:
        """What was held back; reasoning that never ended stays reasoning."""
        held, self._held = self._held, ""
        match self._state:
            case "start" | "content":
                piece: Content | Reasoning = Content(held + self._dropped.end())
            case "closed":
                piece = Content(held.lstrip())
            case "opened":
                piece = Reasoning(held.lstrip())
            case "reasoning":
                piece = Reasoning(held + self._close.end())
        return [piece] if piece.text else []

    def _feed_beginning(self, text: str, pieces: list[Piece]) -> str:
        self._held += text
        begun = self._held.lstrip()
        if begun.startswith(self._tags.open):
            self._state, self._held = "opened", ""
            return begun[len(self._tags.open) :]
        if self._tags.open.startswith(begun):
            return ""
        text = self._held if self._state == "start" else begun
        self._state, self._held = "reasoning" if self._state == "opened" else "content", ""
        return text

    def _feed_reasoning(self, text: str, pieces: list[Piece]) -> str:
        told, found, rest = self._close.feed(text)
        told = self._held + told
        sure = told.rstrip()
        if sure:
            pieces.append(Reasoning(sure))
        if found:
            self._state, self._held = "closed", ""
        else:
            self._held = told[len(sure) :]
        return rest

    def _feed_content(self, text: str, pieces: list[Piece]) -> str:
        told, found, rest = self._dropped.feed(text)
        pieces.append(Content(told))
        if found and not told.strip():
            self._state = "closed"
        return rest
