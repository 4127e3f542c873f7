"""What is said in a sound, through real Whispers: a trained one for digits, and random ones."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from eloquio.worker import sound
from eloquio.worker.failures import NotHere, RequestFailed
from eloquio.worker.listen import Task, listen
from eloquio.worker.load import Loaded, load
from eloquio.worker.plain_listener import quiet_end
from eloquio.worker.progress import Progress
from eloquio.worker.turns import ModelTurns
from eloquio.worker_plan import ModelKind, WorkerPlan
from fixtures import tiny_whisper
from fixtures.digits_whisper.speech import HELD_OUT, MISHEARD, words
from fixtures.sound_files import as_file, tone

pytestmark = pytest.mark.anyio

DIGITS = Path(tiny_whisper.__file__).parent / "digits_whisper"
# One that draws its tokens tries no other temperature.
QUICK = {"temperature": "0.5"}


def loaded_from(folder: Path, kind: ModelKind = "transcription") -> Loaded:
    plan = WorkerPlan(model="ear", model_path=str(folder), kind=kind, dtype="float32")
    return load(plan, Progress(0))


@pytest.fixture(scope="session")
def digits() -> Loaded:
    return loaded_from(DIGITS / "model")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return loaded_from(tiny_whisper.write_tiny_whisper(tmp_path_factory.mktemp("tiny")))


@pytest.fixture(scope="session")
def english(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """Made for English alone, and without heads that say where it listens."""
    folder = tmp_path_factory.mktemp("english")
    return loaded_from(
        tiny_whisper.write_tiny_whisper(folder, is_english_only=True, tells_words=False)
    )


@pytest.fixture(scope="session")
def moonshine(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return loaded_from(tiny_whisper.write_tiny_moonshine(tmp_path_factory.mktemp("moonshine")))


def spoken(digits: str) -> bytes:
    return (DIGITS / "spoken" / f"{digits}.flac").read_bytes()


def one_after_the_other(*lines: str, pause_seconds: float = 0.8) -> bytes:
    pause = np.zeros(int(pause_seconds * sound.RATE), np.float32)
    parts = [part for line in lines for part in (sound.decoded(spoken(line)), pause)]
    return as_file(np.concatenate(parts), sound.RATE, "flac", "flac")


async def events(
    loaded: Loaded, data: bytes, task: Task = "transcribe", **fields: str
) -> list[dict[str, Any]]:
    listening = listen(loaded, ModelTurns(lambda _: None), data, fields, task)
    return [json.loads(event.removeprefix(b"data: ")) async for event in listening]


async def heard(
    loaded: Loaded, data: bytes, task: Task = "transcribe", **fields: str
) -> dict[str, Any]:
    return (await events(loaded, data, task, **fields))[-1]


async def test_digits_that_were_in_no_lesson_are_heard_right(digits: Loaded) -> None:
    wrong = []
    for line in HELD_OUT:
        transcript = await heard(digits, spoken(line))
        assert transcript["language"] == "english"
        if transcript["text"] != words(line):
            wrong.append(line)
    assert wrong in ([], [MISHEARD])


async def test_a_sound_of_any_length_is_heard_to_its_end(digits: Loaded) -> None:
    told = await events(digits, one_after_the_other(*HELD_OUT))
    deltas = [each for each in told if each.get("type") == "transcript.text.delta"]
    transcript = told[-1]
    assert transcript["text"] == " ".join(words(line) for line in HELD_OUT)
    assert len(deltas) >= transcript["duration"] / 6
    assert "".join(each["delta"] for each in deltas).strip() == transcript["text"]
    assert deltas[-1]["heard_seconds"] == transcript["duration"] == told[0]["duration"]


async def test_segments_say_when_something_was_said(digits: Loaded) -> None:
    lines = ("42", "007", "271828")
    transcript = await heard(digits, one_after_the_other(*lines, pause_seconds=1.0))
    segments = transcript["segments"]
    assert [each["text"].strip() for each in segments] == [words(line) for line in lines]
    assert [each["id"] for each in segments] == [0, 1, 2]
    begin = 0.0
    for segment, line in zip(segments, lines, strict=True):
        length = len(sound.decoded(spoken(line))) / sound.RATE
        assert segment["start"] == pytest.approx(begin, abs=0.4)
        assert segment["end"] == pytest.approx(begin + length, abs=0.4)
        assert segment["avg_logprob"] > -0.5
        assert segment["no_speech_prob"] < 0.5
        assert segment["temperature"] == 0.0
        begin += length + 1.0


async def test_words_are_told_in_their_order_within_their_segment(digits: Loaded) -> None:
    transcript = await heard(digits, spoken("31415926"), timestamp_granularities="word,segment")
    told = transcript["words"]
    assert [each["word"] for each in told] == words("31415926").split()
    times = [time for each in told for time in (each["start"], each["end"])]
    assert times == sorted(times)
    assert times[0] < 0.6
    assert times[-1] == pytest.approx(transcript["duration"], abs=0.6)


async def test_times_of_words_leave_the_model_as_it_was(digits: Loaded) -> None:
    before = digits.config._attn_implementation
    await heard(digits, spoken("42"), timestamp_granularities="word")
    assert digits.config._attn_implementation == before


async def test_nothing_is_heard_in_silence(digits: Loaded) -> None:
    noise = np.random.default_rng(0).standard_normal(4 * sound.RATE).astype(np.float32) * 1e-4
    transcript = await heard(digits, as_file(noise, sound.RATE))
    assert (transcript["text"], transcript["segments"]) == ("", [])


async def test_speech_is_translated_into_english(digits: Loaded) -> None:
    transcript = await heard(digits, spoken("42"), "translate")
    assert transcript["text"] == words("42")


async def test_what_came_before_and_a_language_may_be_told(digits: Loaded) -> None:
    transcript = await heard(digits, spoken("271828"), prompt="nine nine", language="English")
    assert transcript["text"] == words("271828")


async def test_a_prompt_that_is_too_long_is_taken_from_its_end(
    digits: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, generate = [], digits.model.generate

    def watched(*arguments: object, prompt_ids: torch.Tensor, **options: object) -> object:
        given.append(prompt_ids.tolist())
        return generate(*arguments, prompt_ids=prompt_ids, **options)

    monkeypatch.setattr(digits.model, "generate", watched)
    transcript = await heard(digits, spoken("271828"), prompt="one two three " * 100)
    assert transcript["text"]
    mark, *kept = given[0]
    assert digits.tokenizer.decode([mark]) == "<|startofprev|>"
    assert len(kept) == digits.config.max_target_positions // 2 - 2
    assert digits.tokenizer.decode(kept).split()[-3:] == ["one", "two", "three"]


async def test_a_second_sound_has_its_turn_between_two_pieces_of_a_long_one(
    digits: Loaded,
) -> None:
    turns = ModelTurns(lambda _: None)
    long = listen(digits, turns, one_after_the_other(*HELD_OUT), {}, "transcribe")
    await anext(long)
    await anext(long)
    short = [event async for event in listen(digits, turns, spoken("8"), {}, "transcribe")]
    assert json.loads(short[-1].removeprefix(b"data: "))["text"] == words("8")
    rest = [event async for event in long]
    assert json.loads(rest[-1].removeprefix(b"data: "))["text"].endswith(words(HELD_OUT[-1]))


async def test_leaving_ends_it_and_the_next_one_is_heard(tiny: Loaded) -> None:
    turns = ModelTurns(lambda _: None)
    hour = as_file(tone(600, sound.RATE), sound.RATE)
    listening = listen(tiny, turns, hour, {}, "transcribe")
    await anext(listening)
    piece = asyncio.create_task(anext(listening))
    await asyncio.sleep(0)
    piece.cancel()
    async with asyncio.timeout(60):
        await asyncio.wait([piece])
        await listening.aclose()
        next_one = listen(tiny, turns, as_file(tone(1, 16_000), 16_000), QUICK, "transcribe")
        assert [event async for event in next_one]


async def test_a_language_may_be_a_code_or_a_name(tiny: Loaded) -> None:
    for asked in ("de", "German", "<|de|>"):
        transcript = await heard(tiny, as_file(tone(1, 16_000), 16_000), language=asked, **QUICK)
        assert transcript["language"] == "german"


@pytest.mark.parametrize(
    ("fields", "param", "words_of_it"),
    [
        ({"language": "tlh"}, "language", "it knows de, en, es, fr"),
        ({"language": "ja"}, "language", "it knows de, en, es, fr"),
        ({"temperature": "2"}, "temperature", "from 0 to 1"),
        ({"temperature": "warm"}, "temperature", "from 0 to 1"),
        ({"temperature": "nan"}, "temperature", "from 0 to 1"),
        ({"prompt": "<|translate|> now"}, "prompt", "own tokens"),
        ({"timestamp_granularities": "line"}, "timestamp_granularities", "segment and word"),
    ],
)
async def test_what_cannot_be_had_is_refused_by_its_name(
    tiny: Loaded, fields: dict[str, str], param: str, words_of_it: str
) -> None:
    with pytest.raises(RequestFailed, match=words_of_it) as refused:
        await events(tiny, as_file(tone(1, 16_000), 16_000), **fields)
    assert (refused.value.status, refused.value.param) == (400, param)


@pytest.mark.parametrize(
    ("task", "fields", "param"),
    [
        ("translate", {}, "model"),
        ("transcribe", {"language": "de"}, "language"),
        ("transcribe", {"timestamp_granularities": "word"}, "timestamp_granularities"),
    ],
)
async def test_a_model_for_english_says_so(
    english: Loaded, task: Task, fields: dict[str, str], param: str
) -> None:
    with pytest.raises(RequestFailed, match=r"ear .*(English only|alignment heads)") as refused:
        await events(english, as_file(tone(1, 16_000), 16_000), task, **fields)
    assert refused.value.param == param


async def test_a_model_for_english_takes_english(english: Loaded) -> None:
    data = as_file(tone(1, 16_000), 16_000)
    assert (await heard(english, data, language="en", **QUICK))["language"] == "english"


async def test_what_is_no_sound_is_refused_before_any_event(tiny: Loaded) -> None:
    listening = listen(tiny, ModelTurns(lambda _: None), b"a text", {}, "transcribe")
    with pytest.raises(RequestFailed, match="no sound") as refused:
        await anext(listening)
    assert refused.value.param == "file"


async def test_a_model_of_another_family_writes_down_what_it_hears(moonshine: Loaded) -> None:
    told = await events(moonshine, as_file(tone(40, 16_000), 16_000))
    assert len([each for each in told if "delta" in each]) == 2
    assert told[-1]["duration"] == 40.0


@pytest.mark.parametrize(
    ("task", "fields", "param"),
    [
        ("transcribe", {"language": "en"}, "language"),
        ("transcribe", {"prompt": "Once"}, "prompt"),
        ("transcribe", {"timestamp_granularities": "word"}, "timestamp_granularities"),
        ("translate", {}, "model"),
    ],
)
async def test_a_model_of_another_family_says_what_it_cannot(
    moonshine: Loaded, task: Task, fields: dict[str, str], param: str
) -> None:
    with pytest.raises(RequestFailed) as refused:
        await events(moonshine, as_file(tone(1, 16_000), 16_000), task, **fields)
    assert refused.value.param == param


async def test_a_model_of_another_kind_is_not_made_to_listen(moonshine: Loaded) -> None:
    plan = WorkerPlan(model="ear", model_path="/", kind="vision")
    other = Loaded(plan, moonshine.model, moonshine.processor, moonshine.tokenizer, "transformers")
    with pytest.raises(NotHere):
        await events(other, as_file(tone(1, 16_000), 16_000))


async def test_a_cut_goes_through_the_quietest_place() -> None:
    samples = np.ones(30 * sound.RATE, np.float32)
    samples[27 * sound.RATE : 28 * sound.RATE] = 0.0
    assert 27 * sound.RATE <= quiet_end(samples, sound.RATE) <= 28 * sound.RATE
