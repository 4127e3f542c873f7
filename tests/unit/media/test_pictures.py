"""A picture as a request brings it: in base64, in a data URL, or at an address."""

import asyncio
import base64
import threading
from contextlib import contextmanager
from io import BytesIO
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from PIL import Image

from eloquio.errors import (
    ImageFormatUnsupported,
    ImageTooLarge,
    InvalidImage,
    RemoteMediaFailed,
    RemoteMediaRefused,
)
from eloquio.media import conversion, pictures
from eloquio.media.fetcher import Fetcher
from eloquio.media.pictures import PictureMaker, Together
from fixtures.picture_files import FILES, HEIGHT, WIDTH
from fixtures.pools import until
from fixtures.web import answer, web

pytestmark = pytest.mark.anyio

PNG, WEBP = FILES["png"](), FILES["lossless webp"]()
BASE64 = base64.b64encode(PNG).decode()
PNG_URL = f"data:image/png;base64,{BASE64}"


async def converted(source, fetch=None):
    return await made(PictureMaker(fetch), source, Together())


async def made(maker, source, together):
    return await maker.for_engine(source, "messages.0.content.1.image_url.url", together)


def image_in(url: str) -> Image.Image:
    head, _, content = url.partition(",")
    assert head in ("data:image/png;base64", "data:image/jpeg;base64")
    return Image.open(BytesIO(base64.b64decode(content, validate=True)))


@pytest.mark.parametrize(
    "source",
    [
        PNG_URL,
        BASE64,
        BASE64.rstrip("="),
        f"DATA:Image/PNG;BASE64,{BASE64}",
        f"data:;base64,{BASE64}",
        f"data:image/jpeg;base64,{BASE64}",
        f"data:image/png;name=a.png;base64,{BASE64}",
        f"data:image/png;base64,{quote(BASE64, safe='')}",
        f"data:image/png,{quote(PNG)}",
        base64.encodebytes(PNG).decode(),
    ],
    ids=[
        *("data URL", "bare", "without padding", "capitals", "without a type", "a wrong type"),
        *("with a name", "escaped", "without base64", "in lines"),
    ],
)
async def test_a_picture_is_taken_in_each_way_it_can_be_written(source):
    assert await converted(source) == PNG_URL


async def test_what_the_engine_cannot_read_becomes_what_it_can():
    url = await converted("data:image/webp;base64," + base64.b64encode(WEBP).decode())
    image = image_in(url)
    assert (image.format, image.size) == ("PNG", (WIDTH, HEIGHT))


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("", InvalidImage),
        ("data:image/png;base64,", InvalidImage),
        ("data:image/png;base64", InvalidImage),
        ("data:image/png;base64,not-base64!", InvalidImage),
        ("A", InvalidImage),
        ("AA=AAA==", InvalidImage),
        ("\u00e4\u00f6\u00fc", InvalidImage),
        ("localhost/a.png", InvalidImage),
        (PNG_URL[:-40], InvalidImage),
        ("/etc/passwd", ImageFormatUnsupported),
        ("data:image/svg+xml,<svg/>", ImageFormatUnsupported),
        (
            "data:image/png;base64," + base64.b64encode(b"plain text").decode(),
            ImageFormatUnsupported,
        ),
        ("http://127.0.0.1/a.png", RemoteMediaRefused),
        ("https://example.com/a.png", RemoteMediaRefused),
        ("file:///etc/passwd", RemoteMediaRefused),
        ("blob:http://localhost/a", RemoteMediaRefused),
    ],
)
async def test_what_is_no_picture_is_refused_by_the_name_of_its_field(source, error):
    with pytest.raises(error) as refused:
        await converted(source)
    body = refused.value.body()["error"]
    assert body["param"] == "messages.0.content.1.image_url.url"
    assert body["next_step"]
    assert "/" not in body["message"]
    assert "Traceback" not in str(body)


async def test_an_address_is_refused_with_the_way_to_allow_it():
    with pytest.raises(RemoteMediaRefused) as refused:
        await converted("https://example.com/a.png")
    assert refused.value.status == 400
    assert "ELOQUIO_ALLOW_REMOTE_MEDIA" in refused.value.next_step
    assert "data URL" in refused.value.next_step


async def test_a_picture_with_too_many_bytes_is_refused_with_both_numbers(monkeypatch):
    monkeypatch.setattr(pictures, "LARGEST_PICTURE_BYTES", len(PNG) - 1)
    with pytest.raises(ImageTooLarge) as refused:
        await converted(PNG_URL)
    assert str(len(PNG)) in refused.value.message
    assert str(len(PNG) - 1) in refused.value.message


async def test_a_picture_at_an_allowed_address_is_fetched_and_converted():
    replies = {"/a.webp": answer(body=WEBP), "/text": answer(body=b"no picture")}
    async with web(replies.get) as server:
        fetch = Fetcher(may_connect=lambda address, port: port == server.port)
        address = f"http://127.0.0.1:{server.port}"
        assert image_in(await converted(f"{address}/a.webp", fetch)).size == (WIDTH, HEIGHT)
        with pytest.raises(ImageFormatUnsupported):
            await converted(f"{address}/text", fetch)


async def test_a_picture_at_an_address_has_as_few_bytes_as_any(monkeypatch):
    monkeypatch.setattr(pictures, "LARGEST_PICTURE_BYTES", len(PNG) - 1)
    async with web(lambda _: answer(body=PNG)) as server:
        fetch = Fetcher(may_connect=lambda address, port: port == server.port)
        with pytest.raises(RemoteMediaFailed) as failed:
            await converted(f"http://127.0.0.1:{server.port}/a.png", fetch)
    assert failed.value.param == "messages.0.content.1.image_url.url"


async def test_a_picture_that_is_written_as_it_would_be_is_handed_on_itself():
    assert await converted(PNG_URL) is PNG_URL
    jpeg = "data:image/jpeg;base64," + base64.b64encode(FILES["jpeg"]()).decode()
    assert await converted(jpeg) is jpeg


async def test_the_pictures_of_a_request_have_so_many_bytes_together_and_no_more(monkeypatch):
    monkeypatch.setattr(pictures, "LARGEST_TOGETHER_BYTES", 3 * len(PNG))
    maker, together = PictureMaker(), Together()
    for _ in range(3):
        assert await made(maker, PNG_URL, together) == PNG_URL
    with pytest.raises(ImageTooLarge) as refused:
        await made(maker, PNG_URL, together)
    assert refused.value.status == 413
    assert str(4 * len(PNG)) in refused.value.message
    assert str(3 * len(PNG)) in refused.value.message
    # Of another request, they are counted anew.
    assert await made(maker, PNG_URL, Together()) == PNG_URL


async def test_what_was_fetched_is_counted_before_it_is_converted(monkeypatch):
    monkeypatch.setattr(pictures, "LARGEST_TOGETHER_BYTES", 3 * len(PNG) - 1)
    monkeypatch.setattr(conversion, "readable_by_engine", lambda *_: pytest.fail("too late"))
    async with web(lambda _: answer(body=PNG * 3)) as server:
        fetch = Fetcher(may_connect=lambda address, port: port == server.port)
        with pytest.raises(ImageTooLarge):
            await converted(f"http://127.0.0.1:{server.port}/a.png", fetch)


async def test_what_was_fetched_counts_once(monkeypatch):
    monkeypatch.setattr(pictures, "LARGEST_TOGETHER_BYTES", len(PNG))
    async with web(lambda _: answer(body=PNG)) as server:
        fetch = Fetcher(may_connect=lambda address, port: port == server.port)
        assert await converted(f"http://127.0.0.1:{server.port}/a.png", fetch) == PNG_URL


@pytest.fixture
def held_up(monkeypatch):
    """Conversions end once `release` is set; those that have room are in `begun`."""
    convert = conversion.readable_by_engine
    held_up = SimpleNamespace(begun=[], waiting=[], release=threading.Event())

    def convert_later(data, room_of):
        held_up.waiting.append(data)

        @contextmanager
        def watched(pixels):
            with room_of(pixels):
                held_up.begun.append(data)
                assert held_up.release.wait(30)
                yield

        return convert(data, watched)

    monkeypatch.setattr(conversion, "readable_by_engine", convert_later)
    yield held_up
    held_up.release.set()


async def test_the_event_loop_goes_on_while_pictures_are_converted_two_at_once(held_up):
    maker = PictureMaker()
    tasks = [asyncio.create_task(made(maker, PNG_URL, Together())) for _ in range(8)]
    await until(lambda: len(held_up.begun) >= 2)
    # A third would begin now, if it could.
    for _ in range(100):
        await asyncio.sleep(0.001)
    assert len(held_up.waiting) == len(held_up.begun) == 2
    held_up.release.set()
    assert await asyncio.gather(*tasks) == [PNG_URL] * 8


async def test_two_large_pictures_are_not_decoded_beside_each_other(held_up, monkeypatch):
    monkeypatch.setattr(pictures, "_PIXELS_AT_ONCE", 2 * WIDTH * HEIGHT - 1)
    maker = PictureMaker()
    tasks = [asyncio.create_task(made(maker, PNG_URL, Together())) for _ in range(2)]
    await until(lambda: held_up.begun and len(held_up.waiting) == 2)
    # The second would begin now, if it could.
    for _ in range(100):
        await asyncio.sleep(0.001)
    assert len(held_up.begun) == 1
    held_up.release.set()
    assert await asyncio.gather(*tasks) == [PNG_URL] * 2
    assert len(held_up.begun) == 2


async def test_a_picture_larger_than_all_the_room_is_decoded_alone(monkeypatch):
    monkeypatch.setattr(pictures, "_PIXELS_AT_ONCE", 1)
    maker = PictureMaker()
    both = [made(maker, PNG_URL, Together()) for _ in range(2)]
    assert await asyncio.gather(*both) == [PNG_URL] * 2
