"""Pictures through the whole way: made ready as a part of their request, seen by a real engine."""

import asyncio
import base64
import io
import json

import aiohttp
import httpx2 as httpx
import pytest
from PIL import Image

from fixtures.running import place, serving
from fixtures.tiny_vision import TOKENS_OF_A_PICTURE, write_tiny_projector


@pytest.fixture(scope="module")
def server(tmp_path_factory, tiny_model):
    home = tmp_path_factory.mktemp("pictures") / "home"
    place(tiny_model, home / "shelf" / "eyes" / "tiny.gguf")
    write_tiny_projector(home / "shelf" / "eyes" / "mmproj-tiny.gguf")
    with serving(home, "--no-load-on-start", "--model-dir", str(home / "shelf")) as running:
        body = {"model_path": "eyes/tiny"}
        httpx.post(f"{running.url}/v1/load", json=body, timeout=60).raise_for_status()
        yield running


def picture(side, format_="WEBP"):
    file = io.BytesIO()
    Image.effect_noise((side, side), 80).save(file, format_)
    return f"data:image/{format_.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"


def chat(*pictures):
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
    content = [*parts, {"type": "text", "text": "What is it?"}]
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 2}


def ask(server, body, **headers):
    url = f"{server.url}/v1/chat/completions"
    return httpx.post(url, json=body, headers=headers, timeout=120)


def test_each_picture_is_seen_and_its_time_is_told(server):
    none = ask(server, chat()).json()["usage"]["prompt_tokens"]
    reply = ask(server, chat(*[picture(64)] * 3), **{"x-trace-level": "request"})
    assert reply.json()["usage"]["prompt_tokens"] == none + 3 * TOKENS_OF_A_PICTURE
    assert reply.json()["trace"]["media_ms"] > 0
    assert "media;dur=" in reply.headers["server-timing"]


def test_four_photos_of_a_phone_are_seen(server):
    photo = Image.merge("RGB", [Image.effect_noise((1008, 756), 80) for _ in range(3)])
    file = io.BytesIO()
    photo.resize((4032, 3024)).save(file, "WEBP", quality=60, method=0)
    url = f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"
    none = ask(server, chat()).json()["usage"]["prompt_tokens"]
    reply = ask(server, chat(*[url] * 4))
    assert reply.status_code == 200, reply.text
    assert reply.json()["usage"]["prompt_tokens"] == none + 4 * TOKENS_OF_A_PICTURE


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path",
    ["/v1/chat/completions", "/v1/chat/completions/input_tokens", "/v1/apply-template"],
)
async def test_a_request_is_cancelled_while_its_pictures_are_made_ready(server, path):
    cancel_id = f"pictures {path}"
    body = chat(*[picture(2500)] * 5) | {"cancel_id": cancel_id}
    async with aiohttp.ClientSession(server.url) as session:

        async def ask():
            data = io.BytesIO(json.dumps(body).encode())
            headers = {"content-type": "application/json"}
            async with session.post(path, data=data, headers=headers) as reply:
                return reply.status, (await reply.json())["error"]["code"]

        async def is_listed():
            async with session.get("/v1/requests") as reply:
                requests = (await reply.json())["data"]
            # It is under way, and no engine was asked yet.
            return any(
                request["status"] == "running" and request["timeline"]["queue_ms"] is None
                for request in requests
            )

        asked = asyncio.create_task(ask())
        async with asyncio.timeout(60):
            while not await is_listed():
                assert not asked.done(), asked.result()
        async with session.post("/cancel", json={"cancel_id": cancel_id}) as reply:
            assert (await reply.json())["status"] == "cancelled"
        assert await asked == (499, "request_cancelled")
