"""A transcript in OpenAI's forms."""

import json

import pytest

from eloquio.audio.formats import srt, vtt, written
from eloquio.audio.schema import Segment, Transcript, Word


def segment(number, start, end, text):
    return Segment(
        id=number,
        seek=0,
        start=start,
        end=end,
        text=text,
        tokens=[1, 2],
        temperature=0.0,
        avg_logprob=-0.25,
        compression_ratio=1.5,
        no_speech_prob=0.01,
    )


TRANSCRIPT = Transcript(
    text="Hello there. General!",
    language="english",
    duration=3661.4,
    segments=[segment(0, 0.0, 1.5, " Hello there."), segment(1, 3599.9996, 3661.25, " General!")],
    words=[Word(word="Hello", start=0.0, end=0.4)],
)


def test_srt_counts_from_one_and_writes_milliseconds_after_a_comma():
    assert srt(TRANSCRIPT.segments) == (
        "1\n00:00:00,000 --> 00:00:01,500\nHello there.\n\n"
        "2\n01:00:00,000 --> 01:01:01,250\nGeneral!\n\n"
    )


def test_vtt_has_its_header_and_writes_milliseconds_after_a_point():
    assert vtt(TRANSCRIPT.segments) == (
        "WEBVTT\n\n"
        "00:00:00.000 --> 00:00:01.500\nHello there.\n\n"
        "01:00:00.000 --> 01:01:01.250\nGeneral!\n\n"
    )


def test_of_nothing_said_there_are_no_captions():
    assert srt([]) == ""
    assert vtt([]) == "WEBVTT\n\n"


def test_no_text_ends_its_caption_early_or_becomes_a_tag():
    said = [segment(0, 0.0, 1.0, " one\n\n 2 --> 3 <b> & two ")]
    assert srt(said) == "1\n00:00:00,000 --> 00:00:01,000\none\n2 -> 3 <b> & two\n\n"
    assert vtt(said).endswith("\none\n2 -> 3 &lt;b> &amp; two\n\n")


def test_json_is_the_text_and_how_long_the_sound_is_in_whole_seconds():
    assert json.loads(written(TRANSCRIPT, "json", task="transcribe")) == {
        "text": "Hello there. General!",
        "usage": {"type": "duration", "seconds": 3662},
    }


def test_text_is_the_text_alone():
    assert written(TRANSCRIPT, "text", task="transcribe") == b"Hello there. General!\n"


@pytest.mark.parametrize(
    ("asked", "there"),
    [
        ([], {"segments"}),
        (["segment"], {"segments"}),
        (["word"], {"words"}),
        (["word", "segment"], {"words", "segments"}),
    ],
)
def test_verbose_json_has_the_timestamps_that_were_asked_for(asked, there):
    told = json.loads(written(TRANSCRIPT, "verbose_json", task="translate", granularities=asked))
    assert told.keys() & {"words", "segments"} == there
    assert told["task"] == "translate"
    assert (told["language"], told["duration"]) == ("english", 3661.4)


def test_a_trace_goes_into_json():
    told = written(TRANSCRIPT, "json", task="transcribe", trace={"trace": {"total_ms": 5}})
    assert json.loads(told)["trace"] == {"total_ms": 5}
