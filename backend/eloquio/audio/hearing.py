"""One sound, heard by an engine."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from pydantic import ValidationError

from eloquio import sse
from eloquio.answers.exchange import Exchange
from eloquio.audio import formats
from eloquio.audio.formats import Task
from eloquio.audio.schema import Transcript, TranscriptionForm, TranslationForm
from eloquio.engines import relay
from eloquio.engines.event_blocks import data_of
from eloquio.engines.pool import Pool
from eloquio.errors import EngineFault

_PATHS: dict[Task, str] = {
    "transcribe": "/v1/audio/transcriptions",
    "translate": "/v1/audio/translations",
}


@dataclass(frozen=True)
class Hearing:
    """What a form asks for."""

    form: TranslationForm
    task: Task

    def path(self) -> str:
        """The engine's, with what is asked of it; the sound is the body."""
        form = self.form
        asked: dict[str, Any] = {"prompt": form.prompt, "temperature": form.temperature}
        if isinstance(form, TranscriptionForm):
            asked["language"] = form.language
            asked["timestamp_granularities"] = ",".join(form.timestamp_granularities)
        given = {name: value for name, value in asked.items() if value not in (None, "")}
        return f"{_PATHS[self.task]}?{urlencode(given)}" if given else _PATHS[self.task]

    def written(self, transcript: Transcript, exchange: Exchange) -> bytes:
        form = self.form
        return formats.written(
            transcript,
            form.response_format,
            task=self.task,
            granularities=(
                form.timestamp_granularities if isinstance(form, TranscriptionForm) else ()
            ),
            trace=exchange.traced(),
        )


async def reply(pool: Pool, hearing: Hearing, exchange: Exchange) -> bytes:
    """The body of a whole reply."""
    async with aclosing(_heard(pool, hearing, exchange)) as found:
        async for each in found:
            if isinstance(each, Transcript):
                return hearing.written(each, exchange)
    raise EngineFault("The engine's answer has no transcript.")


async def events(pool: Pool, hearing: Hearing, exchange: Exchange) -> AsyncGenerator[bytes]:
    """OpenAI's: the text as it is found, and all of it at the end."""
    is_whole = False
    async with aclosing(_heard(pool, hearing, exchange)) as found:
        async for each in found:
            if isinstance(each, str):
                if each:
                    yield sse.event({"type": "transcript.text.delta", "delta": each})
                continue
            is_whole = True
            usage = formats.usage_of(each).model_dump()
            done = {"type": "transcript.text.done", "text": each.text, "usage": usage}
            yield sse.event(done | exchange.traced())
    if not is_whole:
        raise EngineFault("The engine's answer has no transcript.")


async def _heard(
    pool: Pool, hearing: Hearing, exchange: Exchange
) -> AsyncGenerator[str | Transcript]:
    """Pieces of the text, then the transcript. Leaving it ends the engine's work."""
    try:
        async with pool.lease(hearing.form.model, task="transcription") as (engine, client):
            # Not before its turn: who waits has the sound on disk.
            sound = await hearing.form.file.read()
            exchange.model = engine.spec.model
            exchange.timeline.is_asked()
            path = hearing.path()
            async with aclosing(relay.stream(engine, client, path, sound)) as blocks:
                async for block in blocks:
                    for data in data_of(block):
                        if (found := _found(data)) is not None:
                            exchange.timeline.comes()
                            yield found
    finally:
        await hearing.form.file.close()


def _found(data: bytes) -> str | Transcript | None:
    """An event's piece of text, or the transcript; None for an event that says something else."""
    try:
        event: dict[str, Any] = json.loads(data)
        match event.get("type"):
            case "transcript.text.delta":
                return str(event["delta"])
            case None:
                return Transcript.model_validate(event)
            case _:
                return None
    except (ValueError, KeyError, AttributeError, ValidationError) as error:
        raise EngineFault("The engine's answer can't be read.") from error
