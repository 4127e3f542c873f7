"""An engine's stream, cut anywhere."""

from eloquio.chat.event_stream import EventSplitter

STREAM = (
    ': comment\n\ndata: {"a":"é🦙"}\n\n: ping\n\ndata: {"b":\ndata: 1}\n\n\n\ndata:[DONE]\n\n'
).encode()
EVENTS = ['{"a":"é🦙"}'.encode(), b'{"b": 1}', b"[DONE]"]


def test_the_events_are_the_same_wherever_the_stream_is_cut():
    for cut in range(len(STREAM) + 1):
        splitter = EventSplitter()
        assert splitter.feed(STREAM[:cut]) + splitter.feed(STREAM[cut:]) == EVENTS, cut


def test_the_events_are_the_same_byte_by_byte():
    splitter = EventSplitter()
    pieces = [STREAM[at : at + 1] for at in range(len(STREAM))]
    assert [event for piece in pieces for event in splitter.feed(piece)] == EVENTS


def test_an_event_without_its_end_is_none():
    assert EventSplitter().feed(b'data: {"a": 1}\n') == []
