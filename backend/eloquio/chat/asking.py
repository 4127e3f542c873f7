"""What is asked of an engine: a request's body, made what the engine takes."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eloquio.chat import bodies
from eloquio.chat.control_tokens import control_tokens
from eloquio.chat.reply_mends import ReplyWishes
from eloquio.engines.engine import Engine
from eloquio.engines.spec import Task
from eloquio.errors import ModelCannotHear, ModelCannotSee, NotImplementedHere, ToolsUnsupported

# Only of a stream that tells its progress does an engine notice soon that nobody listens any more,
# so none is asked for anything else. Where a name comes twice, the last counts.
_STREAM = {
    "stream": True,
    "return_progress": True,
    "stream_options": {"include_usage": True},
}
_STREAM_BYTES = json.dumps(_STREAM).encode()[1:]


@dataclass(frozen=True)
class Asked:
    """One generation, for whichever engine runs the model."""

    model: str | None
    """None: the one that was loaded last."""
    body: bytes
    path: str = "/v1/chat/completions"
    task: Task = "chat"
    choices: int = 1
    wants_usage: bool = True
    """Whether the client wants the chunk of usage; what it gets whole has it anyway."""
    has_tools: bool = False
    reply: ReplyWishes = field(default_factory=ReplyWishes)
    pictures: int = 0
    sounds: int = 0
    adapter: str | bool | None = None
    """The request's `use_adapter`."""

    async def body_for(self, engine: Engine) -> bytes:
        """The body for this engine; raises what its model can't do."""
        return await bodies.beside(len(self.body), self._made_for, engine)

    def _made_for(self, engine: Engine) -> bytes:
        facts = engine.facts
        if facts is not None and self.has_tools and not facts.supports_tools:
            raise ToolsUnsupported(
                f"The chat template of {engine.spec.model} has no place for tools.", param="tools"
            )
        if facts is not None and self.pictures and not facts.is_vision:
            raise ModelCannotSee(f"{engine.spec.model} can't see pictures.", param="messages")
        if facts is not None and self.sounds and not facts.has_audio_input:
            raise ModelCannotHear(f"{engine.spec.model} can't hear.", param="messages")
        if self.adapter and engine.spec.kind == "llama_server":
            raise NotImplementedHere(
                f"{engine.spec.model} is GGUF, whose adapters hold for all its requests.",
                param="use_adapter",
                next_step="Scale them by POST /v1/lora-adapters, or load the model as safetensors.",
            )
        return control_tokens(engine.spec.control_tokens).defused(self.body)


AskedLater = Callable[[], Awaitable[Asked]]
"""Makes what is asked once it is wanted: its pictures may take a while."""


def at_once(asked: Asked) -> AskedLater:
    """What there is nothing to wait for."""

    async def ready() -> Asked:
        return asked

    return ready


def streamed(body: bytes) -> bytes:
    """`body`, asking for a stream that tells its progress and its usage."""
    body = body.strip()
    if body.startswith(b"{") and body.endswith(b"}"):
        return body[:-1] + b"," + _STREAM_BYTES
    # Another of the encodings that JSON may have.
    return written_streamed(bodies.read(body))


def written_streamed(fields: Mapping[str, Any]) -> bytes:
    """The JSON of `fields`, asking for the same."""
    return bodies.written({**fields, **_STREAM})


def asked_again(model: str, body: bytes) -> Asked:
    """What `body`, a streamed one that was kept, asked of the model."""
    fields: dict[str, Any] = json.loads(body)
    return Asked(
        model=model,
        body=body,
        has_tools=bool(fields.get("tools")) and fields.get("tool_choice") != "none",
        reply=ReplyWishes.of_kept(fields),
        pictures=sum(_parts(message, "image_url") for message in fields["messages"]),
        sounds=sum(_parts(message, "input_audio") for message in fields["messages"]),
        adapter=fields.get("use_adapter"),
    )


def _parts(message: Mapping[str, Any], kind: str) -> int:
    parts = message.get("content")
    return sum(part.get("type") == kind for part in parts) if isinstance(parts, list) else 0
