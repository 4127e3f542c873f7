"""The generation that older scripts ask for: prompts in, pieces of text out."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from eloquio import sse
from eloquio.answers.answer import Answer, StreamedAnswer
from eloquio.answers.exchange import Exchange
from eloquio.chat import bodies
from eloquio.chat.field_types import WholeNumber, few_enough
from eloquio.chat.generation import chunks
from eloquio.chat.schema import Message
from eloquio.chat.translated import asking

router = APIRouter(tags=["chat"], route_class=bodies.JsonRoute)

# A chat's fields that have another name here, or another position: the system's message is the
# first of them there.
NAMES = {"max_tokens": "max_new_tokens", "messages": "messages"}
_REPLIES = sse.described("Pieces of the answer, then `[DONE]`.")


class GenerateRequest(BaseModel):
    """A field that is left out is left to the model's recommended sampling."""

    # A field that nobody here knows would be dropped in silence.
    model_config = ConfigDict(extra="forbid", strict=True)

    messages: Annotated[list[Message], Field(min_length=1), few_enough("messages")]
    system_prompt: str | None = None
    model: str | None = None
    """Missing: the model that was loaded last."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: WholeNumber | None = None
    max_new_tokens: WholeNumber | None = None
    repetition_penalty: float | None = None
    image_base64: str | None = None
    stream: Literal[True] = True
    cancel_id: str | None = Field(default=None, min_length=1, max_length=128)
    """By which `POST /cancel` finds the request."""

    def as_chat(self) -> dict[str, Any]:
        own = {"system_prompt", "max_new_tokens", "cancel_id"}
        fields = self.model_dump(exclude_none=True, exclude=own)
        if self.max_new_tokens is not None:
            fields["max_tokens"] = self.max_new_tokens
        if self.system_prompt:
            system = {"role": "system", "content": self.system_prompt}
            fields["messages"] = [system, *fields["messages"]]
        return fields


@router.post("/generate/stream", response_class=Response, status_code=200, responses=_REPLIES)
async def generate_stream(body: GenerateRequest, request: Request) -> Answer:
    """The older form of a chat: frames `{"content": …}`, each with the next piece of text."""
    exchange = Exchange.of(request, is_stream=True, cancel_id=body.cancel_id)
    asked = asking(body.as_chat(), NAMES, request.app.state.pictures)
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
