"""Sound in, text out: OpenAI's transcriptions and translations."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from eloquio import sse
from eloquio.answers.answer import Answer, StreamedAnswer, WholeAnswer
from eloquio.answers.exchange import Exchange
from eloquio.audio import hearing
from eloquio.audio.formats import MEDIA_TYPES
from eloquio.audio.hearing import Hearing
from eloquio.audio.schema import (
    ResponseFormat,
    TranscriptionForm,
    TranscriptionReply,
    TranslationForm,
    VerboseReply,
    described,
    form_of,
)
from eloquio.engines.pool import Pool

router = APIRouter(tags=["audio"])


def _replies(*, is_streamed: bool) -> dict[int | str, dict[str, Any]]:
    texts = {media_type.partition(";")[0] for media_type in MEDIA_TYPES.values()}
    texts.discard("application/json")
    content: dict[str, Any] = {media_type: {} for media_type in sorted(texts)}
    if is_streamed:
        content[sse.MEDIA_TYPE] = {}
    return {
        200: {
            "model": TranscriptionReply | VerboseReply,
            "description": "What is said, in the form that was asked for.",
            "content": content,
        }
    }


class WrittenAnswer(WholeAnswer):
    """A whole answer that may be a text."""

    def __init__(
        self,
        request: Request,
        exchange: Exchange,
        reply: Callable[[], Awaitable[bytes]],
        form: ResponseFormat,
    ) -> None:
        super().__init__(request, exchange, reply)
        self._media_type = MEDIA_TYPES[form]

    def _start(self, headers: Mapping[str, str]) -> dict[str, Any]:
        return super()._start({**headers, "content-type": self._media_type})


@router.post(
    "/audio/transcriptions",
    response_class=Response,
    responses=_replies(is_streamed=True),
    openapi_extra=dict(described(TranscriptionForm)),
)
async def transcribe(request: Request) -> Answer:
    """OpenAI's transcriptions: what is said in a sound, whole or as it is heard."""
    form = await form_of(request, TranscriptionForm)
    asked = Hearing(form, "transcribe")
    if form.stream:
        exchange = Exchange.of(request, is_stream=True, cancel_id=form.cancel_id)
        pool: Pool = request.app.state.pool
        return StreamedAnswer(request, exchange, hearing.events(pool, asked, exchange))
    return _whole(request, asked)


@router.post(
    "/audio/translations",
    response_class=Response,
    responses=_replies(is_streamed=False),
    openapi_extra=dict(described(TranslationForm)),
)
async def translate(request: Request) -> Answer:
    """OpenAI's translations: what is said in a sound, in English."""
    return _whole(request, Hearing(await form_of(request, TranslationForm), "translate"))


def _whole(request: Request, asked: Hearing) -> Answer:
    exchange = Exchange.of(request, cancel_id=asked.form.cancel_id)
    pool: Pool = request.app.state.pool
    return WrittenAnswer(
        request,
        exchange,
        lambda: hearing.reply(pool, asked, exchange),
        asked.form.response_format,
    )
