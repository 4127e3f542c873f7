"""Stop sequences, found over every cut of a text."""

import pytest

from eloquio.chat.messages.stops import StopScanner


def told(stops, pieces):
    scanner = StopScanner(stops)
    text = "".join(scanner.feed(piece) for piece in pieces)
    return text + scanner.end(), scanner.found


def cuts(text):
    """The text whole, cut at each place, at each two places, and into its characters."""
    yield [text]
    yield list(text)
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            yield [text[:first], text[first:second], text[second:]]


@pytest.mark.parametrize(
    ("stops", "text", "shown", "found"),
    [
        (["END"], "one END two", "one ", "END"),
        (["END"], "ENEND", "EN", "END"),
        (["aab"], "aaab", "a", "aab"),
        (["abab"], "abaabab", "aba", "abab"),
        (["END"], "the END", "the ", "END"),
        (["END"], "the EN", "the EN", None),
        (["END"], "nothing", "nothing", None),
        ([], "anything", "anything", None),
        # What is whole first counts, even where another began before it.
        (["bcd", "c"], "abcd", "ab", "c"),
        (["abc", "ab"], "xabc", "x", "ab"),
        # Of two that end together, nothing of the longer one is told.
        (["c", "bc"], "abcd", "a", "bc"),
        (["🌍👨‍👩‍👧"], "你好🌍👨‍👩‍👧ゴ", "你好", "🌍👨‍👩‍👧"),
        (["\n\n", "\nQ:"], "A\nB\nQ: C", "A\nB", "\nQ:"),
    ],
)
def test_a_stop_sequence_is_found_over_every_cut(stops, text, shown, found):
    for pieces in cuts(text):
        assert told(stops, pieces) == (shown, found), pieces


def test_what_cannot_begin_a_stop_sequence_is_told_at_once():
    scanner = StopScanner(["</answer>"])
    assert scanner.feed("a < b") == "a < b"
    assert scanner.feed(" </ans") == " "
    assert scanner.feed("le") == "</ansle"
    assert scanner.feed("<") == ""
    assert scanner.end() == "<"


def test_of_many_stop_sequences_each_is_found():
    stops = [f"<{number}>" for number in range(1000)]
    for stop in (stops[0], stops[-1]):
        assert told(stops, ["a <1000 <", f"a{stop}b"]) == ("a <1000 <a", stop)


def test_nothing_is_told_after_a_stop_sequence():
    scanner = StopScanner(["."])
    assert scanner.feed("a.b") == "a"
    assert scanner.feed("c") == ""
    assert scanner.end() == ""
