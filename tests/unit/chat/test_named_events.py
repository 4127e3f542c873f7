"""Events under their names, as they go over the wire."""

import json

import pytest

from eloquio.chat import bodies
from eloquio.chat.named_events import encoded, stream_of

pytestmark = pytest.mark.anyio


async def wire_of(*groups):
    async def events():
        for group in groups:
            yield group

    return [block async for block in stream_of(events())]


def parsed(wire):
    events = wire.decode("ascii").removesuffix("\n\n").split("\n\n")
    for event in events:
        name, data = event.split("\n")
        told = json.loads(data.removeprefix("data: "))
        assert name == f"event: {told['type']}"
        yield told


def test_an_event_has_its_type_as_its_name_and_one_line_of_data():
    told = encoded({"type": "ping", "text": "\n\N{WAVING HAND SIGN}"})
    assert told.startswith(b'event: ping\ndata: {"type":"ping",')
    assert [*parsed(told)] == [{"type": "ping", "text": "\n\N{WAVING HAND SIGN}"}]


async def test_events_that_come_together_go_together():
    first, second = {"type": "a"}, {"type": "b.done"}
    assert await wire_of([first, second], [], [first]) == [
        encoded(first) + encoded(second),
        encoded(first),
    ]


async def test_what_tells_a_long_answer_once_more_goes_by_itself():
    long = {"type": "a.delta", "text": "x" * bodies.LARGE_BYTES}
    done, end = {"type": "a.done", "all": [1, {"x": None}]}, {"type": "a.completed", "all": "y"}
    last = {"type": "stop"}
    _, *blocks = await wire_of([long], [long, done, end, last])
    assert [[*parsed(block)] for block in blocks] == [[long, done], [end], [last]]
