"""Pictures of every format, seen by the real llama-server through a tiny projector."""

import base64

import pytest
from PIL import Image

from eloquio.chat.parts import with_pictures
from eloquio.media.pictures import PictureMaker
from fixtures.picture_files import FILES, saved, scene
from fixtures.pools import load, pool_of
from fixtures.running import place
from fixtures.tiny_vision import TOKENS_OF_A_PICTURE, write_tiny_projector

pytestmark = pytest.mark.anyio

LOOK = {"type": "text", "text": "look"}


@pytest.fixture
async def pool(settings, tiny_model):
    folder = settings.models_dir / "seeing"
    place(tiny_model, folder / "tiny.gguf")
    write_tiny_projector(folder / "mmproj-tiny.gguf")
    async with pool_of(settings) as pool:
        yield pool


def part(data: bytes, media_type: str = "image/png") -> dict:
    url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def on_its_side() -> bytes:
    """The scene as a camera stores it that was held on its side."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return saved(scene().transpose(Image.Transpose.ROTATE_90), "PNG", exif=exif.tobytes())


async def asked(pool, *parts) -> tuple[int, dict]:
    """The engine's own answer to these parts as they are."""
    body = {
        "messages": [{"role": "user", "content": list(parts)}],
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 20,
        "cache_prompt": False,
    }
    async with (
        pool.lease("seeing/tiny") as (_, client),
        client.post("/v1/chat/completions", json=body) as reply,
    ):
        return reply.status, await reply.json()


async def shown(pool, *parts) -> dict:
    """The engine's answer to these parts with their pictures made what it reads."""
    [message], _ = await with_pictures(
        [{"role": "user", "content": list(parts)}], None, PictureMaker()
    )
    status, answer = await asked(pool, *message["content"])
    assert status == 200, answer
    return answer


def prompt_tokens(answer) -> int:
    return answer["usage"]["prompt_tokens"]


def impression(answer) -> dict[str, float]:
    """What the model would say next, and how likely: another picture is another impression."""
    [token] = answer["choices"][0]["logprobs"]["content"]
    return {each["token"]: each["logprob"] for each in token["top_logprobs"]}


async def test_a_projector_beside_a_model_lets_it_see(pool):
    engine, _ = await load(pool, "seeing/tiny")
    assert engine.facts.is_vision
    assert engine.warnings == []


async def test_each_picture_takes_its_tokens(pool):
    without = prompt_tokens(await shown(pool, LOOK))
    picture = part(FILES["png"]())
    assert prompt_tokens(await shown(pool, LOOK, picture)) == without + TOKENS_OF_A_PICTURE
    three = await shown(pool, picture, LOOK, picture, picture)
    assert prompt_tokens(three) == without + 3 * TOKENS_OF_A_PICTURE


async def test_the_engine_takes_every_format(pool):
    without = prompt_tokens(await shown(pool, LOOK))
    for kind, write in FILES.items():
        answer = await shown(pool, LOOK, part(write(), "image/unknown"))
        assert prompt_tokens(answer) == without + TOKENS_OF_A_PICTURE, kind


async def test_the_engine_sees_the_same_however_a_picture_is_written(pool):
    expected = impression(await shown(pool, LOOK, part(FILES["png"]())))
    lossless = ("lossless webp", "gif", "tiff", "compressed tiff", "bmp", "palette png")
    for data in (*(FILES[kind]() for kind in lossless), on_its_side()):
        assert impression(await shown(pool, LOOK, part(data))) == pytest.approx(expected, abs=1e-4)
    other = part(saved(scene().rotate(180), "PNG"))
    assert impression(await shown(pool, LOOK, other)) != pytest.approx(expected, abs=1e-4)


async def test_the_order_of_pictures_is_seen(pool):
    red = part(saved(Image.new("RGB", (56, 56), "red"), "WEBP", lossless=True))
    blue = part(saved(Image.new("RGB", (56, 56), "blue"), "WEBP", lossless=True))
    one_way = impression(await shown(pool, red, LOOK, blue))
    assert impression(await shown(pool, red, LOOK, blue)) == pytest.approx(one_way, abs=1e-4)
    assert impression(await shown(pool, blue, LOOK, red)) != pytest.approx(one_way, abs=1e-4)


async def test_build_10434_cannot_do_it_by_itself(pool):
    for kind in ("lossy webp", "lossless webp", "avif", "heic", "tiff"):
        status, _ = await asked(pool, LOOK, part(FILES[kind]()))
        assert status == 400, f"{kind} no longer needs to be converted"
    upright = impression(await shown(pool, LOOK, part(on_its_side())))
    _, as_stored = await asked(pool, LOOK, part(on_its_side()))
    assert impression(as_stored) != pytest.approx(upright, abs=1e-4)
