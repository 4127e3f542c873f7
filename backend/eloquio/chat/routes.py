"""Chat completions, passed through to the engine that runs the model."""

from typing import Any

from fastapi import APIRouter, Request

from eloquio.chat.request import for_engine
from eloquio.chat.schema import ChatRequest
from eloquio.engines.relay import Relay

router = APIRouter(tags=["chat"])

_REPLIES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A chat completion, or its chunks as an event stream.",
        "content": {"application/json": {}, "text/event-stream": {}},
    }
}


@router.post("/chat/completions", response_class=Relay, status_code=200, responses=_REPLIES)
async def create_chat_completion(body: ChatRequest, request: Request) -> Relay:
    """OpenAI's chat completions. The engine's bytes are the answer's bytes."""
    return Relay(
        request.app.state.pool,
        body.model,
        "chat",
        "/v1/chat/completions",
        for_engine(body, await request.body()),
    )
