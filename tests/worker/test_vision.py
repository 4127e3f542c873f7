"""Pictures and sounds in a conversation, through real processors and models of each family."""

import asyncio
import base64
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from eloquio.worker import media, vision
from eloquio.worker.failures import RequestFailed
from eloquio.worker.generator import Order, Prompt
from eloquio.worker.load import Loaded, load
from eloquio.worker.one_by_one import OneByOne
from eloquio.worker.progress import Progress
from eloquio.worker.sampling import Sampling
from eloquio.worker.template import Conversation, prompt_text, template_of
from eloquio.worker.turns import ModelTurns
from eloquio.worker_plan import ModelKind, WorkerPlan
from fixtures import tiny_vision_language
from fixtures.sound_files import as_file, tone

pytestmark = pytest.mark.anyio


def picture(colour: str, size: tuple[int, int] = (100, 80)) -> dict:
    file = BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    url = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def spoken(hertz: float, seconds: float = 2.0) -> dict:
    data = as_file(tone(seconds, 24_000, hertz), 24_000, "flac", "flac", channels=2)
    sound = {"data": base64.b64encode(data).decode(), "format": "flac"}
    return {"type": "input_audio", "input_audio": sound}


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def written(loaded: Loaded, *parts: dict) -> tuple[str, Prompt]:
    messages, pictures, sounds = media.taken_from(
        [{"role": "user", "content": list(parts)}], loaded.plan
    )
    template = template_of(loaded.processor, None)
    rendered = prompt_text(
        loaded.processor, template, Conversation(messages=messages), takes_media=True
    )
    return rendered, vision.prepared(loaded, rendered, pictures, sounds)


async def answered(loaded: Loaded, *parts: dict, tokens: int = 12) -> list[int]:
    _, prompt = written(loaded, *parts)
    generator = OneByOne(loaded.model, ModelTurns(lambda _: None))
    order = Order(prompt, Sampling(temperature=0.0), frozenset(), tokens, None)
    return [step.token async for step in generator.generate(order)]


def loaded_from(folder: Path, kind: ModelKind, dtype: str = "float32") -> Loaded:
    plan = WorkerPlan(model="tiny", model_path=str(folder), kind=kind, dtype=dtype)
    return load(plan, Progress(0))


@pytest.fixture(scope="session")
def idefics(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("models") / "idefics"
    return loaded_from(tiny_vision_language.write_tiny_idefics(smollm2, folder), "vision")


@pytest.fixture(scope="session")
def qwen_vl(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """In half precision, which the picture's numbers have to be in as well."""
    folder = tmp_path_factory.mktemp("models") / "qwen-vl"
    made = tiny_vision_language.write_tiny_qwen_vl(smollm2, folder)
    return loaded_from(made, "vision", "bfloat16")


@pytest.fixture(scope="session")
def qwen_audio(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("models") / "qwen-audio"
    return loaded_from(
        tiny_vision_language.write_tiny_qwen_audio(smollm2, folder), "audio_language"
    )


@pytest.fixture(params=["idefics", "qwen_vl"])
def seeing(request: pytest.FixtureRequest) -> Loaded:
    return request.getfixturevalue(request.param)


async def test_another_picture_gets_another_answer_and_the_same_one_the_same(
    seeing: Loaded,
) -> None:
    red = await answered(seeing, picture("red"), text("What?"))
    assert red == await answered(seeing, picture("red"), text("What?"))
    assert red != await answered(seeing, picture("blue"), text("What?"))


async def test_the_order_of_pictures_matters(seeing: Loaded) -> None:
    first = await answered(seeing, picture("red"), picture("blue"), text("Which?"))
    assert first != await answered(seeing, picture("blue"), picture("red"), text("Which?"))


async def test_text_between_pictures_stays_between_them(seeing: Loaded) -> None:
    rendered, prompt = written(
        seeing, text("One"), picture("red"), text("two"), picture("blue"), text("three")
    )
    said = seeing.tokenizer.decode(prompt.ids, skip_special_tokens=True)
    assert said.index("One") < said.index("two") < said.index("three")
    places = [rendered.index(word) for word in ("One", "two", "three")]
    assert places == sorted(places)


async def test_a_conversation_without_pictures_is_answered_too(seeing: Loaded) -> None:
    assert len(await answered(seeing, text("Hello"))) == 12


async def test_a_larger_picture_takes_as_many_tokens_as_its_processor_gives_it(
    qwen_vl: Loaded,
) -> None:
    """28 by 28 pixels a token; nothing is made smaller before the model's own bound."""
    for side in (280, 840):
        _, prompt = written(qwen_vl, picture("red", (side, side)), text("What?"))
        image = qwen_vl.tokenizer.convert_tokens_to_ids("<|image_pad|>")
        assert list(prompt.ids).count(image) == (side // 28) ** 2


async def test_no_token_that_begins_a_text_is_there_twice(idefics: Loaded) -> None:
    rendered, prompt = written(idefics, picture("red"), text("What?"))
    begin = idefics.tokenizer.bos_token
    assert rendered.startswith(begin)
    assert prompt.ids[0] == idefics.tokenizer.bos_token_id
    assert prompt.ids[1] != idefics.tokenizer.bos_token_id


async def test_leaving_an_answer_about_a_picture_ends_it_within_a_step(seeing: Loaded) -> None:
    _, prompt = written(seeing, picture("red"), text("What?"))
    generator = OneByOne(seeing.model, ModelTurns(lambda _: None))
    order = Order(prompt, Sampling(temperature=0.0), frozenset(), 4000, None)
    answer = generator.generate(order)
    await anext(answer)
    async with asyncio.timeout(30):
        await answer.aclose()
        assert len(await answered(seeing, picture("blue"), text("What?"))) == 12


async def test_another_sound_gets_another_answer_and_the_same_one_the_same(
    qwen_audio: Loaded,
) -> None:
    low = await answered(qwen_audio, spoken(300), text("What?"))
    assert low == await answered(qwen_audio, spoken(300), text("What?"))
    assert low != await answered(qwen_audio, spoken(900), text("What?"))


async def test_the_order_of_sounds_matters(qwen_audio: Loaded) -> None:
    first = await answered(qwen_audio, spoken(300), spoken(900), text("Which?"))
    assert first != await answered(qwen_audio, spoken(900), spoken(300), text("Which?"))


async def test_a_sound_that_would_be_cut_in_silence_is_refused(qwen_audio: Loaded) -> None:
    with pytest.raises(RequestFailed, match="hears 30 of 40 seconds"):
        written(qwen_audio, spoken(300, seconds=40), text("What?"))


async def test_a_model_says_by_its_name_what_it_cannot_see_or_hear(
    qwen_vl: Loaded, qwen_audio: Loaded
) -> None:
    with pytest.raises(RequestFailed, match="tiny can't see pictures"):
        written(qwen_audio, picture("red"))
    with pytest.raises(RequestFailed, match="tiny can't hear sounds"):
        media.taken_from(
            [{"role": "user", "content": [spoken(300)]}],
            WorkerPlan(model="tiny", model_path="/", kind="text"),
        )


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "decoded"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,!"}}, "base64"),
        ({"type": "image_url", "image_url": {}}, "no data"),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, "no sound"),
        ({"type": "input_audio"}, "no data"),
    ],
)
async def test_what_cannot_be_decoded_is_refused_with_its_place(part: dict, words: str) -> None:
    messages = [{"role": "system", "content": "Look."}, {"role": "user", "content": [part]}]
    with pytest.raises(RequestFailed, match=words) as refused:
        media.taken_from(messages, WorkerPlan(model="tiny", model_path="/", kind="vision"))
    assert refused.value.param.startswith("messages.1.content.0")


async def test_a_picture_may_be_bare_base64_and_a_sound_a_data_url() -> None:
    bare = picture("red")["image_url"]["url"].partition(",")[2]
    sound = "data:audio/flac;base64," + spoken(300)["input_audio"]["data"]
    parts = [
        {"type": "image_url", "image_url": {"url": bare}},
        {"type": "audio_url", "audio_url": {"url": sound}},
    ]
    plan = WorkerPlan(model="tiny", model_path="/", kind="vision")
    messages, pictures, sounds = media.taken_from([{"role": "user", "content": parts}], plan)
    assert messages == [{"role": "user", "content": [{"type": "image"}, {"type": "audio"}]}]
    assert pictures[0].size == (100, 80)
    assert len(sounds[0]) == 32_000
