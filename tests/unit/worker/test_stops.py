"""Stop sequences end a text wherever its pieces are cut, and are never told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eloquio.worker.stops import StopScanner
from fixtures.cut_texts import cuts


def told(stops: list[str], pieces: list[str]) -> tuple[str, str | None]:
    scanner = StopScanner(stops)
    text = "".join(scanner.feed(piece) for piece in pieces)
    return text + scanner.end(), scanner.found


@pytest.mark.parametrize(
    ("stops", "text", "expected", "found"),
    [
        (["END"], "one END two", "one ", "END"),
        (["END"], "one EN two", "one EN two", None),
        (["END"], "one EN", "one EN", None),
        (["\n\n"], "a\nb\n\nc", "a\nb", "\n\n"),
        (["ゴ!", "🌍"], "こ🌍ゴ!", "こ", "🌍"),
        (["👨‍👩‍👧"], "a👨‍👩b👨‍👩‍👧c", "a👨‍👩b", "👨‍👩‍👧"),
        (["aab"], "aaab", "a", "aab"),
        (["abcd", "bc"], "xabcd", "xa", "bc"),
        (["bc", "abc"], "xabc", "x", "abc"),
        (["ab", "abc"], "xabc", "x", "ab"),
        (["</think>"], "<think>so</think>yes", "<think>so", "</think>"),
        (["", "x"], "ax", "a", "x"),
        ([], "a text", "a text", None),
    ],
)
def test_a_text_ends_before_the_stop(
    stops: list[str], text: str, expected: str, found: str | None
) -> None:
    for pieces in cuts(text):
        assert told(stops, pieces) == (expected, found), pieces


def test_no_more_is_held_back_than_may_begin_a_stop() -> None:
    scanner = StopScanner(["stop here", "herein"])
    assert scanner.feed("a stop there, stop he") == "a stop there, "
    assert scanner.feed("re") == ""
    assert scanner.found == "stop here"
    assert scanner.feed("more") == ""
    assert scanner.end() == ""


@given(
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5),
    st.lists(st.text("abc", max_size=5), max_size=12),
)
def test_the_first_stop_that_is_whole_counts_however_the_text_is_cut(
    stops: list[str], pieces: list[str]
) -> None:
    text = "".join(pieces)
    ends = [
        (at, -len(stop), stop)
        for at in range(len(text) + 1)
        for stop in stops
        if text[:at].endswith(stop)
    ]
    if ends:
        at, negative_length, stop = min(ends)
        assert told(stops, pieces) == (text[: at + negative_length], stop)
    else:
        assert told(stops, pieces) == (text, None)
