"""The generation that older scripts ask for: prompts in, pieces of text out."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from eloquio import sse
from eloquio.answers.answer import Answer, StreamedAnswer
from eloquio.answers.exchange import Exchange
from eloquio.chat.generation import chunks
from eloquio.chat.schema import Message
from eloquio.chat.translated import asking

router = APIRouter(tags=["chat"])

# A chat's fields that have another name here, or another position: the system's message is the
# first of them there.
NAMES = {"max_tokens": "max_new_tokens", "messages": "messages"}
_REPLIES = sse.described("Pieces of the answer, then `[DONE]`.")


class GenerateRequest(BaseModel):
    """A field that is left out is left to the model's recommended sampling."""

    messages: list[Message] = Field(min_length=1)
    system_prompt: str = ""
    model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_new_tokens: int | None = None
    repetition_penalty: float | None = None
    image_base64: str | None = None

    def as_chat(self) -> dict[str, Any]:
        fields = self.model_dump(exclude_none=True, exclude={"system_prompt", "max_new_tokens"})
        if self.max_new_tokens is not None:
            fields["max_tokens"] = self.max_new_tokens
        if self.system_prompt:
            system = {"role": "system", "content": self.system_prompt}
            fields["messages"] = [system, *fields["messages"]]
        return fields | {"stream": True}


@router.post("/generate/stream", response_class=Response, status_code=200, responses=_REPLIES)
async def generate_stream(body: GenerateRequest, request: Request) -> Answer:
    """The older form of a chat: frames `{"content": …}`, each with the next piece of text."""
    exchange = Exchange.of(request, is_stream=True)
    asked = asking(body.as_chat(), NAMES, request.app.state.fetcher)
    parsed = chunks(request.app.state.pool, asked, exchange)
    return StreamedAnswer(request, exchange, _frames(parsed))


async def _frames(parsed: AsyncGenerator[list[dict[str, Any]]]) -> AsyncGenerator[bytes]:
    async with aclosing(parsed):
        async for some in parsed:
            if frames := b"".join(sse.event({"content": text}) for text in _texts(some)):
                yield frames


def _texts(parsed: list[dict[str, Any]]) -> Iterator[str]:
    for chunk in parsed:
        for choice in chunk["choices"]:
            if text := choice["delta"].get("content"):
                yield text
