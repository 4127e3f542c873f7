"""Several strings, found in a text that comes in pieces, in one pass."""

from collections.abc import Iterable


class Search:
    """Gives on what can't be the beginning of one of the words, however the text is cut.

    Of several words that are met, the one that is whole first counts; of two that end together, the
    longer. A character costs the same whatever the number of words (Aho and Corasick's automaton).
    """

    def __init__(self, words: Iterable[str]) -> None:
        # State 0 is "nothing begun"; each further one is a beginning of a word, `_length` long.
        self._next: list[dict[str, int]] = [{}]
        self._fallback = [0]
        self._length = [0]
        self._word: list[str | None] = [None]
        for word in words:
            self._add(word)
        self._link()
        self._state = 0
        self._held = ""

    def feed(self, text: str) -> tuple[str, str | None, str]:
        """What stands before the first word as far as that is sure, the word, and what follows it.

        What follows is not searched yet: feed it again.
        """
        begin = len(self._held)
        text = self._held + text
        state = self._state
        for at in range(begin, len(text)):
            state = self._after(state, text[at])
            if (word := self._word[state]) is not None:
                self._state, self._held = 0, ""
                return text[: at + 1 - len(word)], word, text[at + 1 :]
        told = len(text) - self._length[state]
        self._state, self._held = state, text[told:]
        return text[:told], None, ""

    def end(self) -> str:
        """What was held back, when the text has ended and it turned out to be no word."""
        held, self._held, self._state = self._held, "", 0
        return held

    def _after(self, state: int, character: str) -> int:
        while state and character not in self._next[state]:
            state = self._fallback[state]
        return self._next[state].get(character, 0)

    def _add(self, word: str) -> None:
        state = 0
        for character in word:
            if character not in self._next[state]:
                self._next[state][character] = len(self._next)
                self._next.append({})
                self._fallback.append(0)
                self._length.append(self._length[state] + 1)
                self._word.append(None)
            state = self._next[state][character]
        if state:
            self._word[state] = word

    def _link(self) -> None:
        """Where a beginning goes on when it fails: to the longest beginning at its own end."""
        states = list(self._next[0].values())
        for state in states:
            for character, following in self._next[state].items():
                fallback = self._after(self._fallback[state], character)
                self._fallback[following] = fallback
                self._word[following] = self._word[following] or self._word[fallback]
                states.append(following)
