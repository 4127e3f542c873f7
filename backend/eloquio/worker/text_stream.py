"""A model's tokens, made text as they come."""

from collections.abc import Callable, Iterable, Sequence

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# A character has four bytes at most, and a token one at least: more than this is no character.
_MOST_PENDING = 8
_MOST_TO_COMPLETE = 3
_TOKENS_BEFORE = 4


class TextStream:
    """Joins to what `decode` makes of all the tokens together, at a cost per token that is bounded.

    Tokens are decoded with those told just before, since a tokenizer's spaces depend on what stands
    in front. A character whose bytes are spread over tokens is told when it is whole.
    """

    def __init__(
        self,
        decode: Callable[[list[int]], str],
        skip_ids: Iterable[int] = (),
        before: Sequence[int] = (),
    ) -> None:
        """`decode` has to keep special tokens; those of `skip_ids` are left out here.

        `before` is what the tokens go on from: of an answer begun by the prompt, the prompt's.
        """
        self._decode = decode
        self._skip_ids = frozenset(skip_ids)
        self._told_ids = [id_ for id_ in before[-_TOKENS_BEFORE:] if id_ not in self._skip_ids]
        self._told = decode(self._told_ids) if self._told_ids else ""
        self._pending_ids: list[int] = []

    def feed(self, token_id: int) -> str:
        """The text that is sure now; often the token's, "" while a character isn't whole."""
        if token_id in self._skip_ids:
            return ""
        self._pending_ids.append(token_id)
        text = self._decode(self._told_ids + self._pending_ids)
        if len(text) > len(self._told) and not text.endswith(_REPLACEMENT):
            return self._tell(text, self._pending_ids, [])
        if len(self._pending_ids) < _MOST_PENDING:
            return ""
        return self._tell_broken(text)

    def end(self) -> str:
        """The rest; a character that the model didn't finish is U+FFFD."""
        if not self._pending_ids:
            return ""
        text = self._decode(self._told_ids + self._pending_ids)
        return self._tell(text, self._pending_ids, [])

    def _tell_broken(self, text: str) -> str:
        """Bytes that will never be a character are told, but for those that still may begin one."""
        for count in range(_MOST_TO_COMPLETE, 0, -1):
            sure, open_ = self._pending_ids[:-count], self._pending_ids[-count:]
            sure_text = self._decode(self._told_ids + sure)
            if sure_text + self._decode(open_) == text:
                return self._tell(sure_text, sure, open_)
        return self._tell(text, self._pending_ids, [])

    def _tell(self, text: str, told_ids: list[int], pending_ids: list[int]) -> str:
        delta = text[len(self._told) :]
        self._told_ids, self._pending_ids = told_ids, pending_ids
        self._told = self._decode(told_ids)
        return delta
