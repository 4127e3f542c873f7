"""The request by which a model goes on in the middle of its answer."""

import json
from typing import Any

from eloquio.chat.fold import Message
from eloquio.errors import RunCannotContinue

# What they describe begins with the answer, and would begin anew in its middle.
_WHOLE_ANSWER_ONLY = ("response_format", "json_schema", "grammar")


def continued(request: bytes, so_far: Message) -> bytes:
    """`request` with the message so far put back as its end; RunCannotContinue where it can't be.

    Limits such as `max_tokens` count anew.
    """
    if so_far.finish_reason not in (None, "length"):
        raise RunCannotContinue(f"The model ended its answer itself ({so_far.finish_reason}).")
    if so_far.tool_calls:
        raise RunCannotContinue("The answer stopped in a call of a tool.")
    if not so_far.content:
        if so_far.reasoning_content:
            raise RunCannotContinue("The answer stopped before its first word, in its reasoning.")
        return request
    fields: dict[str, Any] = json.loads(request)
    for name in _WHOLE_ANSWER_ONLY:
        if fields.get(name) not in (None, {"type": "text"}):
            raise RunCannotContinue(f"An answer that {name} shapes can't be put back.", param=name)
    *before, last = fields["messages"]
    if last.get("role") == "assistant":
        # The request itself began the answer, and an engine takes one such message at the end.
        so_far_text = _text(last.get("content")) + so_far.content
    else:
        before, so_far_text = fields["messages"], so_far.content
    fields["messages"] = [*before, {"role": "assistant", "content": so_far_text}]
    # llama-server puts a last message of the assistant's back by itself, but then says it again;
    # asked for in these words it says only what follows.
    fields |= {"continue_final_message": True, "add_generation_prompt": False}
    # There is no room to think before the next word.
    template = fields.get("chat_template_kwargs") or {}
    fields["chat_template_kwargs"] = {**template, "enable_thinking": False}
    return json.dumps(fields).encode()


def cancel_id_of(request: bytes) -> str | None:
    """The name by which the run can be cancelled, under way again."""
    cancel_id: str | None = json.loads(request).get("cancel_id")
    return cancel_id


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    return content or ""
