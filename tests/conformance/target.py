"""What the cases are tried on: an address, its models, and a client of each kind."""

from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx2 as httpx
from anthropic import Anthropic
from openai import OpenAI

GREEDY = {"temperature": 0}
CAPITAL = "What is the capital of France? Answer briefly."
QUESTION: list[Any] = [{"role": "user", "content": CAPITAL}]
TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Models:
    chat: str
    """One that knows the capital of France, and whose template has a place for tools."""
    embedding: str | None = None
    thinking: str | None = None
    """One that thinks before it answers, unless it is told not to."""


class Target:
    """Used as a context: the clients are closed at its end."""

    def __init__(self, base_url: str, models: Models, *, lacks: Collection[str] = ()) -> None:
        """`base_url` is the server's own, without `/v1`."""
        self.base_url = base_url.rstrip("/").removesuffix("/v1")
        self.models = models
        self.model = models.chat
        self.lacks = frozenset(lacks)
        if models.embedding is None:
            self.lacks |= {"embeddings"}
        if models.thinking is None:
            self.lacks |= {"thinking"}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.openai = stack.enter_context(
                OpenAI(base_url=f"{self.base_url}/v1", api_key="any", max_retries=0)
            )
            self.anthropic = stack.enter_context(
                Anthropic(base_url=self.base_url, api_key="any", max_retries=0)
            )
            self.http = stack.enter_context(
                httpx.Client(base_url=f"{self.base_url}/v1", timeout=TIMEOUT_SECONDS)
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    # Asked often ---------------------------------------------------------------------------

    def chat(self, messages: Any = QUESTION, **fields: Any) -> Any:
        """A chat completion, greedy unless `fields` say otherwise."""
        fields = {"model": self.model, "messages": messages} | GREEDY | fields
        return self.openai.chat.completions.create(**fields)

    def chunks(self, messages: Any = QUESTION, **fields: Any) -> list[Any]:
        return list(self.chat(messages, **fields, stream=True))

    def respond(self, asked: Any = CAPITAL, **fields: Any) -> Any:
        return self.openai.responses.create(
            **({"model": self.model, "input": asked} | GREEDY | fields)
        )

    def message(self, messages: Any = QUESTION, **fields: Any) -> Any:
        return self.anthropic.messages.create(**self.for_messages(messages, **fields))

    def for_messages(self, messages: Any = QUESTION, **fields: Any) -> dict[str, Any]:
        """What Anthropic's client is given for a greedy message."""
        asked = {"model": self.model, "max_tokens": 50, "messages": messages}
        return asked | {"extra_body": GREEDY} | fields

    def complete(self, prompt: Any, **fields: Any) -> Any:
        asked = {"model": self.model, "prompt": prompt, "max_tokens": 8} | GREEDY
        return self.openai.completions.create(**(asked | fields))

    def post(self, path: str, body: Any) -> httpx.Response:
        """Without a client that knows the API, for what no such client would send."""
        return self.http.post(path, json=body)

    def raw_stream(self, path: str = "/chat/completions", **fields: Any) -> httpx.Response:
        """A stream's bytes, read to the end."""
        asked = {"model": self.model, "stream": True} | GREEDY
        if path == "/chat/completions":
            asked |= {"messages": QUESTION}
        return self.http.post(path, json=asked | fields)

    def tokens(self, text: str, model: str | None = None) -> list[int]:
        """`text` as the model reads it."""
        reply = self.post("/tokenize", {"model": model or self.model, "content": text})
        reply.raise_for_status()
        tokens: list[int] = reply.json()["tokens"]
        return tokens


def text_of(chunks: list[Any], index: int = 0) -> str:
    """What one choice of a chat's stream says."""
    return "".join(
        choice.delta.content or ""
        for chunk in chunks
        for choice in chunk.choices
        if choice.index == index
    )


def valid(answer: Any) -> Any:
    """`answer`, once it has been held against the client's own type, strictly."""
    type(answer).model_validate(answer.to_dict())
    return answer


def refused(kind: type[Exception], ask: Callable[[], Any]) -> Any:
    """The exception of this kind with which `ask` ends."""
    try:
        answer = ask()
    except kind as error:
        return error
    raise AssertionError(f"it was answered: {answer!r}")
