"""A model that isn't GGUF, through the whole server to a real worker."""

import asyncio
import itertools
import json

import httpx2 as httpx
import openai
import psutil
import pytest
from openai import AsyncOpenAI, OpenAI

from fixtures import worker_folders
from fixtures.running import CAPITAL, serving, until

pytestmark = pytest.mark.anyio

QUESTION = [{"role": "user", "content": CAPITAL}]
PARIS = "The capital of France is Paris."
STORY = [{"role": "user", "content": "Tell me a long story about a fox."}]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """With SmolLM2 as safetensors, and two adapters on it that name it as the Hub would."""
    home = tmp_path_factory.mktemp("home")
    shelf = home / "shelf"
    worker_folders.put_adapters(shelf)
    with serving(home, "--model-dir", str(shelf), "--no-load-on-start") as running:
        load(running, "org/says_banana", lora_adapters=["org/says_ahoy"], max_seq_length=1024)
        yield running


@pytest.fixture
def client(server):
    with OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def load(server, model, **options):
    reply = httpx.post(f"{server.url}/v1/load", json={"model_path": model} | options, timeout=180)
    assert reply.status_code == 200, reply.text
    return reply.json()


def status(server):
    return httpx.get(f"{server.url}/v1/status").json()


def engine(server):
    [only] = status(server)["engines"]
    return only


def says(client, **fields):
    answer = client.chat.completions.create(
        model="org/says_banana", messages=QUESTION, temperature=0, max_tokens=12, extra_body=fields
    )
    return answer.choices[0].message.content


def test_the_base_and_each_adapter_answer_by_the_request(client, server):
    assert engine(server)["engine"] == "transformers"
    assert engine(server)["loaded"]["adapters"] == ["says_banana", "says_ahoy"]
    assert says(client, use_adapter=False) == PARIS
    assert says(client, use_adapter=True) == says(client) == "Banana! Banana!"
    assert says(client, use_adapter="says_ahoy") == "Ahoy, matey!"
    with pytest.raises(openai.BadRequestError, match=r"nobody.*says_banana, says_ahoy") as refused:
        says(client, use_adapter="nobody")
    assert refused.value.param == "use_adapter"


async def test_twenty_requests_at_once_each_get_their_adapter(server):
    wanted = {False: PARIS, True: "Banana! Banana!", "says_ahoy": "Ahoy, matey!"}
    asked = list(itertools.islice(itertools.cycle(wanted), 20))
    async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:

        async def said(adapter):
            answer = await client.chat.completions.create(
                model="org/says_banana",
                messages=QUESTION,
                temperature=0,
                max_tokens=12,
                extra_body={"use_adapter": adapter},
            )
            return answer.choices[0].message.content

        answers = await asyncio.gather(*(said(adapter) for adapter in asked))
    assert answers == [wanted[adapter] for adapter in asked]


def test_a_stream_says_the_same_with_its_usage(client):
    stream = client.chat.completions.create(
        model="org/says_banana",
        messages=QUESTION,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"use_adapter": False},
    )
    chunks = list(stream)
    said = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert said == PARIS
    assert {chunk.model for chunk in chunks} == {"org/says_banana"}
    assert chunks[-1].usage.completion_tokens == 8


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"grammar": "root ::= ("}, "grammar", 400),
        ({"messages": [{"role": "user", "content": "word " * 1200}]}, None, 400),
    ],
)
def test_what_the_worker_cannot_do_is_refused_by_name(server, fields, param, code):
    body = {"model": "org/says_banana", "messages": QUESTION} | fields
    reply = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=60)
    assert reply.status_code == code, reply.text
    error = reply.json()["error"]
    assert error["param"] == param
    if param is None:
        assert error["code"] == "context_length_exceeded"
        assert "1024" in error["message"]


async def test_a_closed_connection_frees_the_worker_within_a_second(server):
    body = {"model": "org/says_banana", "messages": STORY, "stream": True, "use_adapter": False}
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        async with http.stream("POST", "/v1/chat/completions", json=body) as reply:
            lines = reply.aiter_lines()
            while "content" not in await anext(lines):
                pass
            assert engine(server)["busy"] == 1
        await asyncio.to_thread(until, lambda: engine(server)["busy"] == 0, 10)
    worker = psutil.Process(engine(server)["pid"])
    until(lambda: worker.cpu_percent(interval=0.3) < 20, 20)


async def test_a_worker_that_is_killed_ends_its_eight_answers_with_a_typed_error(server):
    body = {"model": "org/says_banana", "messages": STORY, "stream": True, "use_adapter": False}
    pid = engine(server)["pid"]
    has_begun = asyncio.Semaphore(0)

    async def end_of_one(http) -> dict:
        async with http.stream("POST", "/v1/chat/completions", json=body) as reply:
            assert reply.status_code == 200
            has_told, last = False, ""
            async for line in reply.aiter_lines():
                if not has_told and '"content":"' in line:
                    has_told = True
                    has_begun.release()
                last = line or last
        return json.loads(last.removeprefix("data: "))

    async with httpx.AsyncClient(base_url=server.url, timeout=120) as http:
        answers = [asyncio.create_task(end_of_one(http)) for _ in range(8)]
        for _ in answers:
            await has_begun.acquire()
        psutil.Process(pid).kill()
        ends = await asyncio.gather(*answers)
    assert {end["error"]["code"] for end in ends} == {"engine_crashed"}
    assert all("SIGKILL" in end["error"]["message"] for end in ends)

    answer = httpx.post(
        f"{server.url}/v1/chat/completions",
        json={"model": "org/says_banana", "messages": QUESTION, "temperature": 0},
        timeout=180,
    )
    assert answer.json()["choices"][0]["message"]["content"] == "Banana! Banana!"
    assert engine(server)["pid"] != pid


def test_unloading_ends_the_process_and_a_model_without_adapter_takes_its_place(client, server):
    worker = psutil.Process(engine(server)["pid"])
    assert httpx.post(f"{server.url}/v1/unload", json={}).json()["status"] == "unloaded"
    assert not worker.is_running()

    loaded = load(server, "org/smol", max_seq_length=512)

    assert (loaded["is_gguf"], loaded["is_lora"], loaded["adapters"]) == (False, False, [])
    assert says_of(client, "org/smol") == PARIS


def says_of(client, model):
    answer = client.chat.completions.create(model=model, messages=QUESTION, temperature=0)
    return answer.choices[0].message.content


def test_unsloths_own_loader_answers_too_where_it_is_asked_for_by_name(client, server):
    httpx.post(f"{server.url}/v1/unload", json={"model_path": "org/says_banana"}, timeout=60)
    loaded = load(server, "org/says_ahoy", engine="unsloth", max_seq_length=512)
    assert loaded["engine"] == engine(server)["engine"] == "unsloth"
    for adapter, said in ((False, PARIS), (True, "Ahoy, matey!")):
        answer = client.chat.completions.create(
            model="org/says_ahoy",
            messages=QUESTION,
            temperature=0,
            max_tokens=12,
            extra_body={"use_adapter": adapter},
        )
        assert answer.choices[0].message.content == said
