"""The stream of text equals what real tokenizers make of all the tokens together."""

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from eloquio.worker.text_stream import TextStream

SOURCE = "The capital, 你好🌍👨‍👩‍👧 ゴ  and\n\tso on."


def byte_level() -> Tokenizer:
    """As GPT-2, Llama 3 and Qwen have it; two merges that cut characters in the middle."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    first, second, third = (pre_tokenizers.ByteLevel(add_prefix_space=False)).pre_tokenize_str(
        "🌍"
    )[0][0][:3]
    merges = [(first, second), ("Ġ", third)]
    letters = [*alphabet, *("".join(merge) for merge in merges)]
    made = Tokenizer(models.BPE({letter: at for at, letter in enumerate(letters)}, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made


def sentence_piece() -> Tokenizer:
    """As Llama 2, Mistral and Gemma have it: a mark for spaces, bytes for what it doesn't know."""
    letters = [*(f"<0x{byte:02X}>" for byte in range(256)), *"▁abcdefghijklmnopqrstuvwxyzT,.好"]
    vocabulary = {letter: at for at, letter in enumerate(letters)}
    made = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    made.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return made


@pytest.mark.parametrize("make", [byte_level, sentence_piece])
def test_the_deltas_join_to_the_source(make: type[Tokenizer]) -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=make())
    ids = tokenizer.encode(SOURCE, add_special_tokens=False)
    stream = TextStream(tokenizer.decode)
    deltas = [*(stream.feed(id_) for id_ in ids), stream.end()]
    assert len(ids) > len(SOURCE) // 2
    assert "".join(deltas) == tokenizer.decode(ids) == SOURCE
    assert not any("\ufffd" in delta for delta in deltas)


def test_an_answer_that_goes_on_keeps_the_space_before_its_first_word() -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=sentence_piece())
    prompt = tokenizer.encode("The capital", add_special_tokens=False)
    whole = tokenizer.encode("The capital of", add_special_tokens=False)
    stream = TextStream(tokenizer.decode, before=prompt)
    assert "".join(stream.feed(id_) for id_ in whole[len(prompt) :]) == " of"
