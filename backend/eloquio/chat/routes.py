"""Chat completions, and the end of any answer by its id."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from eloquio import sse
from eloquio.answers.answer import Answer, StreamedAnswer, WholeAnswer
from eloquio.answers.cancels import Cancelled, Cancels
from eloquio.answers.exchange import Exchange
from eloquio.chat import bodies, generation
from eloquio.chat.asking import AskedLater
from eloquio.chat.request import asking_of
from eloquio.chat.schema import ChatRequest
from eloquio.engines.pool import Pool

router = APIRouter(tags=["chat"], route_class=bodies.JsonRoute)

_REPLIES = sse.described("A chat completion, or its chunks as an event stream.", "application/json")


class CancelRequest(BaseModel):
    cancel_id: str = Field(min_length=1, max_length=128)


class CancelReply(BaseModel):
    cancel_id: str
    status: Cancelled
    """`ended`: it was over before. `expected`: none is known yet; one that comes with this id
    within ten seconds is cancelled at once."""


@router.post("/chat/completions", response_class=Response, status_code=200, responses=_REPLIES)
async def create_chat_completion(body: ChatRequest, request: Request) -> Answer:
    """OpenAI's chat completions, streamed or whole."""
    exchange = Exchange.of(request, is_stream=bool(body.stream), cancel_id=body.cancel_id)
    asking = asking_of(body, await request.body(), request.app.state.pictures)
    pool: Pool = request.app.state.pool
    if body.stream:
        return StreamedAnswer(request, exchange, generation.generate(pool, asking, exchange))
    return WholeAnswer(request, exchange, lambda: _completion(pool, asking, exchange))


@router.post("/cancel")
async def cancel(body: CancelRequest, request: Request) -> CancelReply:
    """End the answer that was asked for with this `cancel_id`, whatever it waits for."""
    cancels: Cancels = request.app.state.cancels
    return CancelReply(cancel_id=body.cancel_id, status=await cancels.cancel(body.cancel_id))


async def _completion(pool: Pool, asking: AskedLater, exchange: Exchange) -> bytes:
    folding = await generation.whole(pool, asking, exchange)
    return await bodies.beside(folding.size_bytes, bodies.written, folding.completion())
