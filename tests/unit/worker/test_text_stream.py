"""Tokens become text without a broken character, a lost space or a look back."""

from hypothesis import given
from hypothesis import strategies as st

from eloquio.worker.text_stream import TextStream

SOURCE = "你好🌍👨‍👩‍👧 ゴ"


class ByteVocabulary:
    """Tokens that stand for bytes, as GPT-2's do. Counts what it decodes."""

    def __init__(self, tokens: list[bytes]) -> None:
        self.tokens = tokens
        self.decoded = 0

    def decode(self, ids: list[int]) -> str:
        self.decoded += len(ids)
        return b"".join(self.tokens[id_] for id_ in ids).decode(errors="replace")


class WordVocabulary:
    """Tokens with a mark for the space before a word, as SentencePiece has them.

    The first space of what is decoded is left out.
    """

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    def decode(self, ids: list[int]) -> str:
        return "".join(self.tokens[id_] for id_ in ids).replace("▁", " ").removeprefix(" ")


def told(stream: TextStream, ids: list[int]) -> list[str]:
    return [*(stream.feed(id_) for id_ in ids), stream.end()]


def test_characters_cut_anywhere_come_whole() -> None:
    data = SOURCE.encode()
    for first in range(len(data) + 1):
        for second in range(first, len(data) + 1):
            vocabulary = ByteVocabulary([data[:first], data[first:second], data[second:]])
            deltas = told(TextStream(vocabulary.decode), [0, 1, 2])
            assert "".join(deltas) == SOURCE
            assert not any("\ufffd" in delta for delta in deltas)


def test_bytes_of_their_own_make_whole_characters() -> None:
    vocabulary = ByteVocabulary([bytes([byte]) for byte in SOURCE.encode()])
    deltas = told(TextStream(vocabulary.decode), list(range(len(vocabulary.tokens))))
    assert [delta for delta in deltas if delta] == list(SOURCE)


@given(st.lists(st.binary(min_size=1, max_size=5), max_size=40))
def test_whatever_bytes_come_the_deltas_join_to_all_of_them_decoded(tokens: list[bytes]) -> None:
    vocabulary = ByteVocabulary(tokens)
    ids = list(range(len(tokens)))
    assert "".join(told(TextStream(vocabulary.decode), ids)) == vocabulary.decode(ids)


def test_a_character_that_is_not_finished_is_told_as_broken_at_the_end() -> None:
    stream = TextStream(ByteVocabulary([b"a", "🌍".encode()[:3]]).decode)
    assert [stream.feed(0), stream.feed(1), stream.end()] == ["a", "", "\ufffd"]


def test_a_replacement_character_that_the_model_wrote_is_kept() -> None:
    stream = TextStream(ByteVocabulary(["\ufffd".encode(), b"!"]).decode)
    assert "".join(told(stream, [0, 1])) == "\ufffd!"


def test_spaces_between_words_are_kept_and_the_first_is_not_told() -> None:
    stream = TextStream(WordVocabulary(["▁The", "▁capital", "s", "▁", "▁▁of"]).decode)
    assert told(stream, [0, 1, 2, 3, 4]) == ["The", " capital", "s", " ", "  of", ""]


def test_an_answer_that_goes_on_from_the_prompt_keeps_its_first_space() -> None:
    decode = WordVocabulary(["▁The", "▁capital", "▁of"]).decode
    assert told(TextStream(decode, before=[0, 1]), [2]) == [" of", ""]


def test_special_tokens_are_left_out_but_for_those_that_are_wanted() -> None:
    decode = ByteVocabulary([b"a", b"<end>", b"<tool>", b"b"]).decode
    assert "".join(told(TextStream(decode, skip_ids=[1]), [0, 1, 2, 3, 1])) == "a<tool>b"


def test_a_token_costs_the_same_late_in_an_answer_as_early() -> None:
    vocabulary = ByteVocabulary([bytes([byte]) for byte in (SOURCE * 200).encode()])
    stream = TextStream(vocabulary.decode)
    costs = []
    for id_ in range(len(vocabulary.tokens)):
        before = vocabulary.decoded
        stream.feed(id_)
        costs.append(vocabulary.decoded - before)
    assert max(costs[-1000:]) == max(costs[:1000])
    assert max(costs) < 30


def test_bytes_that_are_no_text_cost_no_more() -> None:
    vocabulary = ByteVocabulary([b"\xf0"] * 2000)
    deltas = told(TextStream(vocabulary.decode), list(range(2000)))
    assert "".join(deltas) == "\ufffd" * 2000
    assert vocabulary.decoded < 2000 * 60
