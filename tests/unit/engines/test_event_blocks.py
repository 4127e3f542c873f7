"""An engine's stream, cut anywhere, as blocks of whole events."""

import json

import pytest

from eloquio.engines.event_blocks import EventBlocks, data_of, events_of

TEXT = "你好🌍 👨‍👩‍👧 ゴ"


def event(**fields):
    return b"data: " + json.dumps({"created": 1} | fields, ensure_ascii=False).encode() + b"\n\n"


def told(stream, size):
    """What comes out when the stream comes in pieces of this size."""
    blocks = EventBlocks()
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    return b"".join(blocks.feed(piece) for piece in pieces), blocks


def test_events_come_whole_wherever_they_are_cut():
    stream = event(text=TEXT) + b":\n\n" + event(text="b") + b"data: [DONE]\n\n"
    for size in range(1, len(stream) + 1):
        out, blocks = told(stream, size)
        assert out == stream.removesuffix(b"data: [DONE]\n\n")
        assert blocks.is_whole


def test_a_block_never_holds_half_an_event():
    blocks = EventBlocks()
    assert blocks.feed(event(a=1) + b"data: {") == event(a=1)
    assert blocks.feed(b"}\n") == b""
    assert blocks.feed(b"\n") == b"data: {}\n\n"


def test_a_stream_without_its_end_is_not_whole():
    _, blocks = told(event(a=1), 7)
    assert not blocks.is_whole
    assert blocks.error is None


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_an_error_ends_the_stream_wherever_it_is_cut(size):
    error = b'data: {"error":{"code":500,"message":"odd"}}\n\n'
    out, blocks = told(event(a=1) + error, size)
    assert out == event(a=1)
    assert json.loads(blocks.error) == {"error": {"code": 500, "message": "odd"}}
    assert not blocks.is_whole


def test_the_progress_of_the_prompt_is_no_part_of_the_answer():
    progress = b'data: {"created":1,"prompt_progress":{"total":9}}\n\n'
    out, _ = told(progress + event(a=1) + progress, 1000)
    assert out == event(a=1)


def test_a_text_that_quotes_such_words_is_left_alone():
    stream = event(text='"prompt_progress":{ "created":5 data: {"error": data: [DONE]')
    out, blocks = told(stream, 1000)
    assert out == stream
    assert blocks.error is None
    assert not blocks.is_whole


def test_a_stream_is_created_once():
    out, _ = told(b'data: {"created":17}\n\ndata: {"created":18,"a":"x"}\n\n', 9)
    assert out == b'data: {"created":17}\n\ndata: {"created":17,"a":"x"}\n\n'


def test_a_blocks_events_and_their_data_are_told_apart():
    block = b"data: {}\n\n: a comment\n\nevent: x\ndata: {\ndata: }\n\n"
    assert list(data_of(block)) == [b"{}", b"{ }"]
    assert b"".join(events_of(block)) == block
