"""What a template says of its model, and what a request may set of it."""

from typing import Any

import pytest

from eloquio.worker.failures import RequestFailed
from eloquio.worker.messages import Message
from eloquio.worker.template import (
    Conversation,
    TemplateRefused,
    capabilities,
    prompt_ids,
    prompt_text,
    template_of,
)

HELLO = [{"role": "user", "content": "hello"}]


class Recorded:
    """Writes the messages' texts, and remembers what else it was given."""

    def __init__(self, bos_token: str | None = "<s>") -> None:
        self.bos_token = bos_token
        self.fields: dict[str, Any] = {}
        self.added_special_tokens: bool | None = None

    def apply_chat_template(self, conversation: list[Message], **fields: Any) -> str:
        self.fields = fields
        return "|".join(message["content"] for message in conversation)

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        self.added_special_tokens = add_special_tokens
        return [ord(character) for character in text]


@pytest.mark.parametrize(
    ("template", "tools", "reasoning"),
    [
        ("{%- if tools %}{{ tools | tojson }}{% endif %}<think></think>", True, True),
        ("{%- if tools is not none %}", True, False),
        ("{# tools and <think> come later #}{{ messages }}", False, False),
        ("{{ message['tools'] }}", True, False),
        ("<|start|>assistant<|channel|>final<|message|>", False, True),
        ("{% if enable_thinking %}", False, True),
        ("{{ messages }}", False, False),
    ],
)
def test_what_a_model_can_do_is_told_by_its_template(
    template: str, tools: bool, reasoning: bool
) -> None:
    assert capabilities(template) == (tools, reasoning)


@pytest.mark.parametrize(
    ("asked", "template", "expected"),
    [
        ({}, "", {}),
        ({"enable_thinking": False}, "", {"enable_thinking": False}),
        (
            {"enable_thinking": True},
            "{%- if not thinking is defined %}",
            {"enable_thinking": True, "thinking": True},
        ),
        ({"enable_thinking": True}, "{{ message.thinking }}", {"enable_thinking": True}),
        ({"reasoning_effort": "high"}, "", {"reasoning_effort": "high"}),
        ({"reasoning_effort": "none"}, "", {"enable_thinking": False}),
        (
            {"reasoning_effort": "none", "enable_thinking": True},
            "",
            {"enable_thinking": True},
        ),
        (
            {"enable_thinking": True, "template_fields": {"enable_thinking": False, "x": 1}},
            "",
            {"enable_thinking": False, "x": 1},
        ),
    ],
)
def test_the_template_gets_what_the_request_says_of_thinking(
    asked: dict[str, Any], template: str, expected: dict[str, Any]
) -> None:
    tokenizer = Recorded()
    prompt_text(tokenizer, template, Conversation(HELLO, **asked))
    ours = {"chat_template", "tools", "tokenize", "add_generation_prompt", "continue_final_message"}
    assert {name: tokenizer.fields[name] for name in tokenizer.fields.keys() - ours} == expected


@pytest.mark.parametrize("name", ["tokenize", "messages", "chat_template", "tools"])
def test_a_request_can_not_replace_what_is_ours(name: str) -> None:
    with pytest.raises(RequestFailed, match=name):
        prompt_text(Recorded(), "", Conversation(HELLO, template_fields={name: "x"}))


def test_only_an_answer_can_be_continued() -> None:
    with pytest.raises(TemplateRefused, match="assistant"):
        prompt_text(Recorded(), "", Conversation(HELLO, continues=True))


def test_an_answer_that_has_not_begun_is_asked_for_anew() -> None:
    tokenizer = Recorded()
    begun = [*HELLO, {"role": "assistant", "content": ""}]
    assert prompt_text(tokenizer, "", Conversation(begun, continues=True)) == "hello"
    assert tokenizer.fields["add_generation_prompt"] is True


@pytest.mark.parametrize(
    ("bos_token", "text", "adds"),
    [
        ("<s>", "<s>hello", False),
        ("<s>", "hello", True),
        (None, "hello", True),
        ("", "hello", True),
    ],
)
def test_the_beginning_of_text_is_there_once(bos_token: str | None, text: str, adds: bool) -> None:
    tokenizer = Recorded(bos_token)
    prompt_ids(tokenizer, text)
    assert tokenizer.added_special_tokens is adds


def test_of_several_templates_that_for_tools_is_taken_with_tools() -> None:
    class Several:
        chat_template = {"default": "plain", "tool_use": "with tools"}  # noqa: RUF012

    assert template_of(Several()) == "plain"
    assert template_of(Several(), has_tools=True) == "with tools"
    assert template_of(Several(), "mine", has_tools=True) == "mine"


def test_a_model_without_a_template_says_how_to_give_one() -> None:
    with pytest.raises(TemplateRefused, match="chat_template_override"):
        template_of(object())
