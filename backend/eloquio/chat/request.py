"""A chat request, made what the engine wants."""

import json
from typing import Any

from eloquio.chat.schema import ChatRequest
from eloquio.errors import NotImplementedHere

_NOT_YET = {
    "enable_tools": "Tools that Eloquio runs itself",
    "use_adapter": "Switching adapters",
    "image_base64": "Pictures",
    "audio_base64": "Sound",
}


def for_engine(request: ChatRequest, body: bytes) -> bytes:
    """`body` itself, unless a field has another name at the engine."""
    _refuse_what_is_not_there(request)
    if request.repetition_penalty is None and request.enable_thinking is None:
        return body
    fields: dict[str, Any] = json.loads(body)
    if (penalty := fields.pop("repetition_penalty", None)) is not None:
        fields.setdefault("repeat_penalty", penalty)
    if (thinking := fields.pop("enable_thinking", None)) is not None:
        template = fields.get("chat_template_kwargs") or {}
        fields["chat_template_kwargs"] = {"enable_thinking": thinking, **template}
    return json.dumps(fields).encode()


def _refuse_what_is_not_there(request: ChatRequest) -> None:
    for name, what in _NOT_YET.items():
        if getattr(request, name) not in (None, False):
            raise NotImplementedHere(
                f"{what} can't be had here yet.", param=name, next_step=f"Leave {name} out."
            )
    for message in request.messages:
        parts = message.content if isinstance(message.content, list) else []
        if not all(part.get("type") == "text" for part in parts):
            # Not left to the engine: it would fetch a picture's address from the network it is in.
            raise NotImplementedHere(
                "Of a message's content, only text can be had here yet.",
                param="messages",
                next_step="Send content as a text, or as parts of the type text.",
            )
