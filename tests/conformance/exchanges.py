"""The exchanges whose bytes are kept as golden transcripts, and the servers that they are with."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx

from conformance import shown
from conformance.target import GREEDY, QUESTION
from eloquio.doctor.faults import gguf_file, stand_in
from fixtures.running import BUILTIN, place, serving

TEMPLATE = Path(__file__).with_name("tools.jinja")


@dataclass(frozen=True)
class Exchange:
    """One request, and what is kept of its reply."""

    name: str
    path: str
    body: dict[str, Any]
    then: str = ""
    """Asked after it and kept instead: the address in which `{id}` is that of the first reply."""


@dataclass(frozen=True)
class Scene:
    """An exchange in which the engine, a stand-in, says exactly this."""

    exchange: Exchange
    behaviour: dict[str, Any] = field(default_factory=dict)


def _real(name: str, path: str, **fields: Any) -> Exchange:
    return Exchange(name, path, {"model": BUILTIN, "stream": True} | GREEDY | fields)


_CHAT, _USAGE = "/chat/completions", {"stream_options": {"include_usage": True}}
_CALLS = {"max_tokens": 60, "tool_choice": "required"}

REAL: tuple[Exchange, ...] = (
    _real("chat", _CHAT, messages=QUESTION),
    _real("chat-usage", _CHAT, messages=QUESTION, max_tokens=4, **_USAGE),
    _real("chat-length", _CHAT, messages=QUESTION, max_tokens=2),
    _real("chat-stop", _CHAT, messages=QUESTION, stop=[" is Pa"]),
    _real("chat-logprobs", _CHAT, messages=QUESTION, max_tokens=2, logprobs=True, top_logprobs=1),
    _real("chat-tools", _CHAT, messages=shown.chat(), tools=[shown.WEATHER], **_CALLS),
    _real("completions", "/completions", prompt="The capital of France is", max_tokens=3, **_USAGE),
    _real("responses", "/responses", input=QUESTION, max_output_tokens=20),
    _real("responses-length", "/responses", input=QUESTION, max_output_tokens=2),
    _real("messages", "/messages", messages=QUESTION, max_tokens=20),
    Exchange(
        "runs-events",
        "/runs",
        {"model": BUILTIN, "messages": QUESTION} | GREEDY,
        then="/runs/{id}/events",
    ),
)


def _chunk(delta: dict[str, Any], reason: str | None = None, index: int = 0) -> str:
    choice = {"index": index, "delta": delta, "finish_reason": reason}
    return _event(choices=[choice])


def _usage(completion: int) -> str:
    usage = {"prompt_tokens": 9, "completion_tokens": completion, "total_tokens": 9 + completion}
    return _event(choices=[], usage=usage)


def _event(**fields: Any) -> str:
    about = {"id": "chatcmpl-x", "object": "chat.completion.chunk", "created": 1}
    # As compact as the engine writes it, whose usage is known by its bytes.
    chunk = json.dumps(about | fields, separators=(",", ":"))
    return f"data: {chunk}\n\n"


_DONE = "data: [DONE]\n\n"
_BEGIN = {"role": "assistant", "content": None}


def _call(**piece: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0} | piece]}


_THINKS_SAYS_CALLS = [
    _chunk(_BEGIN),
    _chunk({"reasoning_content": "They want "}),
    _chunk({"reasoning_content": "the weather."}),
    _chunk({"content": "Let me "}),
    _chunk({"content": "look."}),
    _chunk(_call(id="call_x", type="function", function={"name": "weather", "arguments": ""})),
    _chunk(_call(function={"arguments": '{"town":'})),
    _chunk(_call(function={"arguments": '"Paris"}'})),
    _chunk({}, "tool_calls"),
    _usage(12),
    _DONE,
]
_TWO_CHOICES = [
    *(_chunk(_BEGIN, index=index) for index in (0, 1)),
    *(_chunk({"content": word}, index=index) for word in ("Hel", "lo") for index in (0, 1)),
    _chunk({}, "stop", 0),
    _usage(2),
    _chunk({}, "length", 1),
    _usage(2),
    _DONE,
]


def _scene(name: str, path: str, model: str, behaviour: dict[str, Any], **fields: Any) -> Scene:
    asked = {"model": model, "messages": QUESTION, "stream": True} | fields
    return Scene(Exchange(name, path, asked), behaviour)


_CRASHES = {"streams": _THINKS_SAYS_CALLS[:4], "then": "crash", "says": ["about to fall"]}
_THINKS = {"streams": _THINKS_SAYS_CALLS}

SCENES: tuple[Scene, ...] = (
    _scene("chat-two-choices", _CHAT, "two", {"streams": _TWO_CHOICES}, n=2, **_USAGE),
    _scene("chat-thinking", _CHAT, "thinks", _THINKS),
    _scene("chat-crash", _CHAT, "crashes", _CRASHES),
    _scene("messages-thinking", "/messages", "thinks-again", _THINKS, max_tokens=50),
    _scene("messages-crash", "/messages", "crashes-again", _CRASHES, max_tokens=50),
    Scene(
        Exchange(
            "responses-thinking",
            "/responses",
            {"model": "thinks-once-more", "input": QUESTION, "stream": True},
        ),
        _THINKS,
    ),
)


@contextmanager
def real_server(home: Path, real_model: Path) -> Iterator[str]:
    """The address of a server with the real engine, and the real model with a tools' template."""
    place(real_model, home / "models" / f"{BUILTIN}.gguf")
    load = {"model_path": BUILTIN, "chat_template_override": TEMPLATE.read_text()}
    with serving(home, ELOQUIO_LOAD_ON_START="false") as server:
        httpx.post(f"{server.url}/load", json=load, timeout=60).raise_for_status()
        yield server.url


@contextmanager
def staged_server(home: Path) -> Iterator[str]:
    """The address of a server with a stand-in for an engine, and a model for each scene."""
    program = stand_in.write(home / "engine" / "llama-server")
    for scene in SCENES:
        model = home / "models" / f"{scene.exchange.body['model']}.gguf"
        model.parent.mkdir(parents=True, exist_ok=True)
        stand_in.write_for(gguf_file.write_model(model), **scene.behaviour)
    settings = {"LLAMA_SERVER_PATH": str(program), "ELOQUIO_LOAD_ON_START": "false"}
    with serving(home, **settings) as server:
        yield server.url
