"""What is said in a sound, through real Whispers: with random weights."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eloquio.worker import sound
from eloquio.worker.failures import NotHere, RequestFailed
from eloquio.worker.listen import Task, listen
from eloquio.worker.load import Loaded, load
from eloquio.worker.plain_listener import quiet_end
from eloquio.worker.progress import Progress
from eloquio.worker.turns import ModelTurns
from eloquio.worker_plan import ModelKind, WorkerPlan
from fixtures import tiny_whisper
from fixtures.sound_files import as_file, tone

pytestmark = pytest.mark.anyio

# One that draws its tokens tries no other temperature.
QUICK = {"temperature": "0.5"}


def loaded_from(folder: Path, kind: ModelKind = "transcription") -> Loaded:
    plan = WorkerPlan(model="ear", model_path=str(folder), kind=kind, dtype="float32")
    return load(plan, Progress(0))


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


async def events(
    loaded: Loaded, data: bytes, task: Task = "transcribe", **fields: str
) -> list[dict[str, Any]]:
    listening = listen(loaded, ModelTurns(lambda _: None), data, fields, task)
    return [json.loads(event.removeprefix(b"data: ")) async for event in listening]


async def heard(
    loaded: Loaded, data: bytes, task: Task = "transcribe", **fields: str
) -> dict[str, Any]:
    return (await events(loaded, data, task, **fields))[-1]


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
