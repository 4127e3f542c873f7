"""Large bodies are read and written as small ones are, and hold nobody up meanwhile."""

import asyncio
import json
import threading
import time
from typing import Annotated

import pytest
from fastapi import APIRouter, Body, FastAPI, Request
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from eloquio.chat import bodies
from eloquio.chat.well_formed import WellFormed, refuse_what_json_cannot_carry
from eloquio.errors import InvalidRequest
from fixtures.asgi import ask

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
MANY = [0] * 600_000


def large(value) -> bytes:
    """The value in a body that is read by the way for large ones."""
    return json.dumps([value, MANY]).encode()


@settings(deadline=None)
@given(VALUES)
def test_whatever_json_holds_is_written_as_everybody_writes_it(value):
    assert bodies.written(value) == json.dumps(value).encode()


@pytest.mark.parametrize("length", [0, 1, 99, 100, 101, 200, 1234])
def test_long_lists_are_written_whole(length):
    numbers = list(range(length))
    for value in (numbers, {"a": [numbers, {"b": numbers}]}, [[number] for number in numbers]):
        assert bodies.written(value) == json.dumps(value).encode()


@pytest.mark.parametrize(
    "value",
    [
        {"messages": [{"role": "user", "content": [{"type": "text", "text": 'é🌍 "\\" , [{'}]}]},
        [[], {}, [[]], [{}], {"a": {}}, "", None, True, -1.5e300, 10**40],
        {"a": {"b": {"c": {"d": {"e": {"f": [1, [2, [3, [4, [5, [6]]]]]]}}}}}},
        {"twice": 1, "nothing": float("inf")},
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_large_body_is_read_as_a_small_one(value, encoding):
    body = json.dumps([value, MANY], ensure_ascii=False).encode(encoding)
    assert bodies.read(body) == [value, MANY]


@pytest.mark.parametrize("end", [b"", b"]]", b",]", b"] x", b', "a": 1]', b"} ]", b', "a]'])
def test_a_large_body_that_is_no_json_is_refused_where_a_small_one_would_be(end):
    body = large({"a": [1, {"b": "c"}]})[:-1] + end
    with pytest.raises(json.JSONDecodeError) as small:
        json.loads(body)
    with pytest.raises(json.JSONDecodeError) as refused:
        bodies.read(body)
    assert (refused.value.msg, refused.value.pos) == (small.value.msg, small.value.pos)


@pytest.mark.parametrize("work", [bodies.read, bodies.written])
def test_other_threads_have_their_turns_while_many_values_are_read_and_written(work):
    turns, is_over = [], threading.Event()

    def take_turns():
        while not is_over.is_set():
            turns.append(time.monotonic())
            time.sleep(0.0001)

    value = {"x": [[number, "a"] for number in range(500_000)]}
    given = value if work is bodies.written else json.dumps(value).encode()
    other = threading.Thread(target=take_turns)
    other.start()
    before = len(turns)
    work(given)
    during = len(turns) - before
    is_over.set()
    other.join()
    # In one go, which a call into C is, the other has one at most.
    assert during > 10


@pytest.mark.anyio
async def test_only_what_is_large_is_made_in_a_thread_of_its_own():
    here = threading.get_ident()
    assert await bodies.beside(bodies.LARGE_BYTES - 1, threading.get_ident) == here
    assert await bodies.beside(bodies.LARGE_BYTES, threading.get_ident) != here


@pytest.mark.anyio
async def test_what_fails_in_a_thread_fails_as_it_would_here():
    for size_bytes in (0, bodies.LARGE_BYTES):
        with pytest.raises(ValueError, match="property name"):
            await bodies.beside(size_bytes, bodies.read, b"{")
    with pytest.raises(json.JSONDecodeError):
        await asyncio.to_thread(bodies.read, b"[" + large(1))


# Routes --------------------------------------------------------------------------------------


class Fields(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


@pytest.fixture
def app():
    router = APIRouter(route_class=bodies.JsonRoute)

    @router.post("/fields")
    async def kind_of_fields(body: Fields, request: Request) -> str:
        return type(await request.json()).__name__

    @router.post("/list")
    async def length(body: Annotated[list[int], Body()]) -> int:
        return len(body)

    app = FastAPI()
    app.include_router(router, prefix="/v1")
    return app


def posted(app, path, body):
    return ask(app, path, method="POST", headers={"content-type": "application/json"}, body=body)


@pytest.mark.parametrize("beside", [{}, {"x": MANY}])
def test_a_route_is_given_fields_that_were_looked_through(app, beside):
    reply = posted(app, "/v1/fields", json.dumps({"a": 1, **beside}).encode())
    assert (reply.status, reply.body) == (200, b'"WellFormed"')


def test_a_route_that_takes_a_list_is_given_one(app):
    assert posted(app, "/v1/list", b"[1, 2, 3]").body == b"3"


@pytest.mark.parametrize(
    ("body", "status"), [(b'{"a": "\\ud800"}', 400), (b'{"a": 1e999}', 400), (b"{", 422)]
)
def test_a_route_refuses_what_json_cannot_carry_on(app, body, status):
    assert posted(app, "/v1/fields", body).status == status


def test_what_was_looked_through_once_is_not_looked_through_again():
    fields = {"a": "\ud800"}
    with pytest.raises(InvalidRequest, match="surrogate"):
        WellFormed.of(fields)
    seen = WellFormed.of({"a": "é"})
    assert seen == {"a": "é"}
    seen["a"] = fields["a"]
    refuse_what_json_cannot_carry(seen)
