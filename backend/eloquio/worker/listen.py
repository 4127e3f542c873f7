"""What is said in a sound, as it is found: piece by piece, for sounds of any length."""

import asyncio
import json
import logging
import threading
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import torch

from eloquio.worker import sound
from eloquio.worker.failures import (
    GenerationFailed,
    NotHere,
    OutOfMemory,
    RequestFailed,
    is_out_of_memory,
)
from eloquio.worker.load import Loaded
from eloquio.worker.sound import Samples
from eloquio.worker.turns import ModelTurns

Task = Literal["transcribe", "translate"]

# What is left of a sound when it is too short for a word.
_LEAST_SECONDS = 0.1
_GRANULARITIES = ("segment", "word")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wishes:
    """What a request says beside its sound."""

    task: Task
    language: str | None = None
    """As it was sent: a code or a name. None: it is found by the model."""
    prompt: str = ""
    temperature: float = 0.0
    """Above 0: draw by it. Otherwise the likeliest, and warmer only where that makes no sense."""
    wants_words: bool = False

    @classmethod
    def of(cls, fields: Mapping[str, str], task: Task) -> "Wishes":
        asked = fields.get("timestamp_granularities") or ""
        granularities = [each for each in asked.split(",") if each]
        for each in granularities:
            if each not in _GRANULARITIES:
                raise RequestFailed(
                    f"there are no timestamps of a {each}; there are segment and word",
                    param="timestamp_granularities",
                )
        return cls(
            task=task,
            language=fields.get("language") or None,
            prompt=fields.get("prompt") or "",
            temperature=_temperature(fields.get("temperature")),
            wants_words="word" in granularities,
        )


@dataclass(frozen=True)
class Word:
    word: str
    start: float
    end: float


@dataclass(frozen=True)
class Segment:
    """What was said from `start` to `end`, in seconds of the piece it was heard in."""

    text: str
    start: float
    end: float
    tokens: tuple[int, ...] = ()
    temperature: float = 0.0
    avg_logprob: float = 0.0
    compression_ratio: float = 1.0
    no_speech_prob: float = 0.0
    words: tuple[Word, ...] = ()

    def told(self, number: int, offset: float) -> dict[str, Any]:
        return {
            "id": number,
            "seek": round(offset * 100),
            "start": round(self.start + offset, 2),
            "end": round(self.end + offset, 2),
            "text": self.text,
            "tokens": list(self.tokens),
            "temperature": self.temperature,
            "avg_logprob": self.avg_logprob,
            "compression_ratio": self.compression_ratio,
            "no_speech_prob": self.no_speech_prob,
        }


@dataclass(frozen=True)
class Heard:
    """What a model found in one piece of sound."""

    segments: tuple[Segment, ...]
    seconds: float
    """How far it listened: there the next piece begins."""
    language: str | None = None


class Listener(Protocol):
    """A model, as one request uses it."""

    rate: int
    seconds: float
    """How much it hears at once."""

    def hear(self, samples: Samples, is_left: threading.Event) -> Heard:
        """Of `samples`, which are at most as long as it hears at once. Blocks."""
        ...


@dataclass
class _Transcript:
    duration: float
    segments: list[dict[str, Any]] = field(default_factory=list)
    words: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    language: str | None = None

    def add(self, heard: Heard, offset: float) -> str:
        """The text that comes with it."""
        self.language = self.language or heard.language
        for segment in heard.segments:
            self.segments.append(segment.told(len(self.segments), offset))
            self.words += [
                {
                    "word": word.word,
                    "start": round(word.start + offset, 2),
                    "end": round(word.end + offset, 2),
                }
                for word in segment.words
            ]
        delta = "".join(segment.text for segment in heard.segments)
        if not self.text:
            delta = delta.lstrip()
        self.text += delta
        return delta


async def listen(
    loaded: Loaded, turns: ModelTurns, data: bytes, fields: Mapping[str, str], task: Task
) -> AsyncGenerator[bytes]:
    """Events as the sound is heard, and one with everything at the end.

    The first says how long the sound is; then there is a `transcript.text.delta` for each piece
    of it, and the last has `text`, `language`, `duration`, `segments`, and `words` where they are
    asked for. Between two pieces others have their turn. Leaving ends it within a step.
    """
    wishes = Wishes.of(fields, task)
    listener = _listener(loaded, wishes)
    samples = await sound.heard(data, rate=listener.rate, param="file")
    transcript = _Transcript(len(samples) / listener.rate)
    yield _event({"type": "transcript.started", "duration": round(transcript.duration, 2)})
    offset = 0.0
    while offset + _LEAST_SECONDS < transcript.duration or offset == 0.0:
        begin = round(offset * listener.rate)
        piece = samples[begin : begin + round(listener.seconds * listener.rate)]
        heard = await _heard(listener, turns, piece)
        delta = transcript.add(heard, offset)
        offset += heard.seconds
        heard_seconds = round(min(offset, transcript.duration), 2)
        yield _event(
            {"type": "transcript.text.delta", "delta": delta, "heard_seconds": heard_seconds}
        )
    yield _event(
        {
            "text": transcript.text.strip(),
            "language": transcript.language,
            "duration": round(transcript.duration, 2),
            "segments": transcript.segments,
        }
        | ({"words": transcript.words} if wishes.wants_words else {})
    )


def _listener(loaded: Loaded, wishes: Wishes) -> Listener:
    # Each brings in a part of transformers, which takes a while.
    if loaded.config.model_type == "whisper":
        from eloquio.worker.whisper import WhisperListener

        return WhisperListener(loaded, wishes)
    if loaded.plan.kind != "transcription":
        raise NotHere(f"{loaded.plan.model} isn't made to write down what is said")
    from eloquio.worker.plain_listener import PlainListener

    return PlainListener(loaded, wishes)


async def _heard(listener: Listener, turns: ModelTurns, piece: Samples) -> Heard:
    is_left = threading.Event()

    @torch.no_grad()
    def hear() -> Heard:
        with turns.turn(None):
            if is_left.is_set():
                raise RequestFailed("nobody waits for what is said any more")
            return listener.hear(piece, is_left)

    thread = asyncio.create_task(asyncio.to_thread(hear))
    try:
        return await asyncio.shield(thread)
    except RequestFailed:
        raise
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        if is_out_of_memory(words):
            raise OutOfMemory(f"the device had no room to listen: {words}") from error
        logger.exception("a piece of sound couldn't be heard")
        raise GenerationFailed(f"the model failed: {words}") from error
    finally:
        is_left.set()
        if not thread.done():
            await asyncio.wait([thread])
            # Nobody waits for what came of it.
            thread.exception()


def _temperature(given: str | None) -> float:
    try:
        temperature = float(given or 0.0)
    except ValueError:
        temperature = -1.0
    if not 0.0 <= temperature <= 1.0:
        raise RequestFailed(
            f"temperature has to be a number from 0 to 1, not {given}", param="temperature"
        )
    return temperature


def _event(fields: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(fields, separators=(",", ":")).encode() + b"\n\n"
