"""A transcript in each of the forms that OpenAI has for one."""

import json
import math
from collections.abc import Sequence
from typing import Any, Literal, assert_never

from eloquio.audio.schema import (
    DurationUsage,
    Granularity,
    ResponseFormat,
    Segment,
    Transcript,
    TranscriptionReply,
    VerboseReply,
)

Task = Literal["transcribe", "translate"]

MEDIA_TYPES: dict[ResponseFormat, str] = {
    "json": "application/json",
    "verbose_json": "application/json",
    "text": "text/plain; charset=utf-8",
    "srt": "text/plain; charset=utf-8",
    "vtt": "text/vtt; charset=utf-8",
}


def written(
    transcript: Transcript,
    form: ResponseFormat,
    *,
    task: Task,
    granularities: Sequence[Granularity] = (),
    trace: dict[str, Any] | None = None,
) -> bytes:
    """The body of a reply. `trace` goes into what is JSON."""
    match form:
        case "json":
            reply = TranscriptionReply(text=transcript.text, usage=usage_of(transcript))
            return _json(reply.model_dump(), trace)
        case "verbose_json":
            verbose = _verbose(transcript, task, granularities)
            return _json(verbose.model_dump(exclude_none=True), trace)
        case "text":
            return f"{transcript.text}\n".encode()
        case "srt":
            return srt(transcript.segments).encode()
        case "vtt":
            return vtt(transcript.segments).encode()
        case _:
            assert_never(form)


def usage_of(transcript: Transcript) -> DurationUsage:
    return DurationUsage(seconds=math.ceil(transcript.duration))


def srt(segments: Sequence[Segment]) -> str:
    return "".join(
        f"{number}\n{_time(segment.start, ',')} --> {_time(segment.end, ',')}\n"
        f"{_lines(segment)}\n\n"
        for number, segment in enumerate(segments, start=1)
    )


def vtt(segments: Sequence[Segment]) -> str:
    cues = (
        f"{_time(segment.start, '.')} --> {_time(segment.end, '.')}\n"
        # In WebVTT these begin a tag or an entity.
        f"{_lines(segment).replace('&', '&amp;').replace('<', '&lt;')}\n\n"
        for segment in segments
    )
    return "WEBVTT\n\n" + "".join(cues)


def _lines(segment: Segment) -> str:
    """Without what ends a cue: an empty line, or the arrow between two times."""
    lines = (line.strip() for line in segment.text.splitlines())
    return "\n".join(line for line in lines if line).replace("-->", "->")


def _time(seconds: float, mark: str) -> str:
    milliseconds = round(seconds * 1000)
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    whole, milliseconds = divmod(milliseconds, 1000)
    return f"{hours:02}:{minutes:02}:{whole:02}{mark}{milliseconds:03}"


def _verbose(
    transcript: Transcript, task: Task, granularities: Sequence[Granularity]
) -> VerboseReply:
    has_segments = "segment" in granularities or not granularities
    return VerboseReply(
        task=task,
        text=transcript.text,
        language=transcript.language,
        duration=transcript.duration,
        segments=transcript.segments if has_segments else None,
        words=transcript.words if "word" in granularities else None,
        usage=usage_of(transcript),
    )


def _json(fields: dict[str, Any], trace: dict[str, Any] | None) -> bytes:
    return json.dumps(fields | (trace or {})).encode()
