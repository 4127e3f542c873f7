"""The prompt that a model's chat template makes of a conversation."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from eloquio.worker.failures import RequestFailed
from eloquio.worker.messages import MENDINGS, Message, prepared, text_of, with_tools_in_system
from eloquio.worker.reasoning import shows_reasoning

_LONGEST_WORDS = 300
# What a request's own fields for the template may not replace: arguments of `apply_chat_template`.
_OURS = frozenset(
    {"conversation", "messages", "tools", "chat_template", "add_generation_prompt", "tokenize"}
    | {"continue_final_message", "padding", "truncation", "max_length", "return_tensors"}
    | {"return_dict", "return_assistant_tokens_mask", "tokenizer_kwargs", "processor_kwargs"}
)
_NAMES_TOOLS = re.compile(r"\btools\b")
_COMMENTS = re.compile(r"\{#.*?#\}", re.DOTALL)
_NAMES_THINKING = re.compile(r"(?<![.'\"])\bthinking\b(?!['\"])")


class TemplateRefused(RequestFailed):
    """The template can't write these messages; its own words say why."""

    def __init__(self, words: str) -> None:
        words = words.strip().split("\nRendered chat:")[0][:_LONGEST_WORDS]
        super().__init__(
            f"the model's chat template refuses these messages: {words}", param="messages"
        )


class TakesTemplate(Protocol):
    """A tokenizer or a processor of transformers."""

    def apply_chat_template(self, conversation: list[Message], **fields: Any) -> Any: ...


class Tokenizer(Protocol):
    """What makes token ids of a text."""

    @property
    def bos_token(self) -> str | None: ...

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...


@dataclass(frozen=True)
class Conversation:
    """What a request asks to be answered, in OpenAI's shape."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    enable_thinking: bool | None = None
    reasoning_effort: str | None = None
    """`none` turns reasoning off, where `enable_thinking` doesn't say."""
    template_fields: Mapping[str, Any] = field(default_factory=dict)
    """`chat_template_kwargs`: they win over the fields above."""
    continues: bool = False
    """The answer goes on from the last message, which is the assistant's."""

    @property
    def continued(self) -> str:
        """The beginning of the answer that the prompt ends with."""
        return text_of(self.messages[-1].get("content")) if self.continues else ""


class Capabilities(NamedTuple):
    """What a model can do by what its template has a place for."""

    supports_tools: bool
    supports_reasoning: bool


def capabilities(template: str) -> Capabilities:
    read = _COMMENTS.sub("", template)
    asks = "enable_thinking" in read or "reasoning_effort" in read
    return Capabilities(_NAMES_TOOLS.search(read) is not None, asks or shows_reasoning(read))


def template_of(tokenizer: Any, override: str | None = None, *, has_tools: bool = False) -> str:
    """The template for a request, of the several that a tokenizer may have.

    Raises TemplateRefused where it has none.
    """
    own = override or getattr(tokenizer, "chat_template", None)
    if isinstance(own, Mapping):
        own = (own.get("tool_use") if has_tools else None) or own.get("default")
    if not isinstance(own, str):
        raise TemplateRefused("the model has none; load it with chat_template_override")
    return own


def prompt_text(
    tokenizer: TakesTemplate,
    template: str,
    conversation: Conversation,
    *,
    takes_media: bool = False,
) -> str:
    """The whole prompt. With `takes_media` pictures and sound keep their places in it.

    Where the template refuses system messages, several of them, or two turns of one role, they are
    merged; a system message that it leaves out is put where it doesn't. Raises TemplateRefused with
    the template's words for what can't be mended.
    """
    messages = prepared(conversation.messages, template, takes_media=takes_media)
    continues = conversation.continues
    if continues and (not messages or messages[-1].get("role") != "assistant"):
        raise TemplateRefused("only a last message of the assistant can be continued")
    if continues and not conversation.continued:
        messages, continues = messages[:-1], False
    fields = _fields(template, conversation) | {"continue_final_message": continues}
    accepted: str | None = None
    refusal: TemplateRefused | None = None
    for mended in _tries(with_tools_in_system(messages, conversation.tools, template)):
        try:
            prompt = _rendered(tokenizer, template, mended, fields)
        except TemplateRefused as refused:
            refusal = refused
            continue
        if not _leaves_out_a_system(tokenizer, template, mended, fields, prompt):
            return prompt
        accepted = accepted or prompt
    if accepted is None:
        raise refusal or TemplateRefused("there are none")
    return accepted


def _leaves_out_a_system(
    tokenizer: TakesTemplate,
    template: str,
    messages: list[Message],
    fields: dict[str, Any],
    prompt: str,
) -> bool:
    """Whether the prompt would be the same without one of the system messages.

    One that isn't in it to the letter may have been read all the same, as `/no_think` is.
    """
    for at, message in enumerate(messages):
        text = text_of(message["content"]).strip() if message.get("role") == "system" else ""
        if text in prompt:
            continue
        others = [*messages[:at], *messages[at + 1 :]]
        try:
            if _rendered(tokenizer, template, others, fields) == prompt:
                return True
        except TemplateRefused:
            continue
    return False


def _tries(messages: list[Message]) -> list[list[Message]]:
    tries = [messages]
    for mend in MENDINGS:
        mended = mend(tries[-1])
        if mended != tries[-1]:
            tries.append(mended)
    return tries


def _fields(template: str, conversation: Conversation) -> dict[str, Any]:
    given = dict(conversation.template_fields)
    if taken := sorted(_OURS & given.keys()):
        raise RequestFailed(
            f"chat_template_kwargs can't set {', '.join(taken)}", param="chat_template_kwargs"
        )
    fields: dict[str, Any] = {}
    thinks, effort = conversation.enable_thinking, conversation.reasoning_effort
    if effort == "none":
        thinks, effort = (False if thinks is None else thinks), None
    if effort is not None:
        fields["reasoning_effort"] = effort
    if thinks is not None:
        fields["enable_thinking"] = thinks
        if _NAMES_THINKING.search(template):
            fields["thinking"] = thinks
    return fields | given | {"tools": list(conversation.tools) or None}


def _rendered(
    tokenizer: TakesTemplate, template: str, messages: list[Message], fields: dict[str, Any]
) -> str:
    try:
        prompt = tokenizer.apply_chat_template(
            messages,
            chat_template=template,
            add_generation_prompt=not fields["continue_final_message"],
            tokenize=False,
            **fields,
        )
    except Exception as error:
        # A template is a program of the model's: whatever it raises is about these messages.
        raise TemplateRefused(str(error) or type(error).__name__) from error
    return str(prompt)


def prompt_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of a rendered prompt, whose beginning-of-text token is never there twice."""
    begins = bool(tokenizer.bos_token) and text.startswith(str(tokenizer.bos_token))
    return tokenizer.encode(text, add_special_tokens=not begins)
