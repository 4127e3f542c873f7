"""What the application answers to requests that no route can serve."""

import httpx2 as httpx
import pytest

from eloquio.app import create_app
from eloquio.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(tmp_path):
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("the page")
    app = create_app(
        Settings(
            home=tmp_path / "home", hf_home=tmp_path / "hf", page_dir=page, load_on_start=False
        )
    )
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://localhost"
        ) as client,
    ):
        yield client


async def refusal(client, path, body):
    headers = {"content-type": "application/json"}
    reply = await client.post(path, content=body, headers=headers)
    return reply.status_code, reply.json()["error"]["code"]


@pytest.mark.parametrize(
    ("path", "method", "allowed"),
    [
        ("/v1/load", "GET", "POST"),
        ("/load", "GET", "POST"),
        ("/api/inference/status", "DELETE", "GET"),
        ("/index.html", "POST", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_told_the_right_one(client, path, method, allowed):
    reply = await client.request(method, path)

    assert reply.status_code == 405
    assert reply.headers["allow"] == allowed
    assert reply.json()["error"]["code"] == "method_not_allowed"


async def test_an_address_of_the_interface_that_isnt_there_is_a_404(client):
    reply = await client.get("/v1/nothing", headers={"accept": "application/json"})

    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    "body",
    [
        rb'{"messages": [{"role": "\ud800"}]}',
        rb'{"model": "\ud800", "messages": [{"role": "user"}]}',
        rb'{"messages": [{"role": "user", "content": [1, {"\ud800": 1}]}]}',
        rb'{"messages": {"\ud800": 1}}',
        rb'{"repetition_penalty": "\ud800", "messages": [{"role": "user"}]}',
    ],
)
async def test_half_a_surrogate_pair_in_a_chat_is_a_wrong_request(client, body):
    assert await refusal(client, "/v1/chat/completions", body) == (400, "invalid_request")


@pytest.mark.parametrize(
    "body",
    [
        rb'{"model_path": "\ud800"}',
        rb'{"model_path": "x", "chat_template_override": "\ud800"}',
        rb'{"model_path": "x", "extra_args": ["\ud800"]}',
        rb'{"model_path": "x", "extra_args": ["\u0000"]}',
        rb'{"model_path": "x", "rpc_servers": ["\ud800"]}',
        rb'{"model_path": "x", "draft_model": "\u0000"}',
        rb'{"model_path": "x", "cache_type_kv": "\ud800"}',
    ],
)
async def test_half_a_surrogate_pair_in_a_load_is_a_wrong_request(client, body):
    assert await refusal(client, "/v1/load", body) == (400, "invalid_request")


async def test_only_the_interface_itself_is_described(client):
    paths = (await client.get("/openapi.json")).json()["paths"]

    assert "/v1/load" in paths
    assert [path for path in paths if not path.startswith(("/v1/", "/auth/"))] == []
