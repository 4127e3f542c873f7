"""The control tokens of a vocabulary and of a chat template."""

import pytest

from eloquio.errors import ModelFileMissing, ModelFileTruncated
from eloquio.models.control_tokens import read
from fixtures.gguf_files import cut, write_file, write_model

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4


def vocabulary(folder, tokens):
    metadata = {
        "tokenizer.ggml.tokens": list(tokens),
        "tokenizer.ggml.scores": [0.5] * len(tokens),
        "tokenizer.ggml.token_type": list(tokens.values()),
    }
    return write_model(folder / "model.gguf", metadata=metadata)


def test_those_of_the_control_type_are_read(tmp_path):
    tokens = {"a": NORMAL, "<unk>": UNKNOWN, "</s>": CONTROL, "[INST]": CONTROL, "<b>": NORMAL}
    assert read(vocabulary(tmp_path, tokens), "") == ("</s>", "<unk>", "[INST]")


@pytest.mark.parametrize(
    "token", ["<|im_end|>", "<\uff5cUser\uff5c>", "<|turn>", "<turn|>", "[|user|]", "<end_of_turn>"]
)
@pytest.mark.parametrize("kind", [NORMAL, USER_DEFINED])
def test_a_marker_is_one_whatever_its_type(tmp_path, token, kind):
    tokens = {token: kind, "<": NORMAL, "<|": NORMAL, "<div>": USER_DEFINED, "[x": NORMAL}
    assert read(vocabulary(tmp_path, tokens), "") == (token,)


def test_what_a_model_says_itself_and_blanks_are_none(tmp_path):
    tokens = dict.fromkeys(("<think>", "</think>", "<tool_call>", "\n\n\n", "ab"), CONTROL)
    assert read(vocabulary(tmp_path, tokens), "") == ()


def test_a_template_s_markers_are_some_though_no_token_has_their_text(tmp_path):
    template = "{{ '<s>[INST] <<SYS>>' + x[0] }}<|im_start|>{% if a < b | c %}<think>{% endif %}"
    assert read(vocabulary(tmp_path, {"a": NORMAL}), template) == (
        "<<SYS>>",
        "<|im_start|>",
        "[INST]",
    )


def test_the_real_model_s_are_those_its_template_writes(real_model):
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>"} <= set(
        read(real_model, "")
    )


def test_a_long_vocabulary_is_read_across_the_window(tmp_path):
    tokens = {f"word{'x' * 90}{number}": NORMAL for number in range(40_000)}
    tokens |= {f"<|{number}|>": CONTROL for number in range(100)}
    assert len(read(vocabulary(tmp_path, tokens), "")) == 100


def test_a_token_too_long_for_one_is_hopped_over(tmp_path):
    tokens = {"x" * 70_000: CONTROL, "y" * 2_000_000: NORMAL, "<|end|>": CONTROL}
    assert read(vocabulary(tmp_path, tokens), "") == ("<|end|>",)


@pytest.mark.parametrize("metadata", [{}, {"tokenizer.ggml.tokens": [1, 2]}])
def test_without_a_vocabulary_there_are_only_the_template_s(tmp_path, metadata):
    path = write_file(tmp_path / "model.gguf", architecture="llama", metadata=metadata)
    assert read(path, "<|user|>") == ("<|user|>",)


def test_without_types_the_markers_are_found(tmp_path):
    metadata = {"tokenizer.ggml.tokens": ["a", "<|end|>", "</s>"]}
    path = write_file(tmp_path / "model.gguf", architecture="llama", metadata=metadata)
    assert read(path, "") == ("<|end|>",)


def test_what_is_wrong_with_the_file_is_told_as_of_its_header(tmp_path):
    with pytest.raises(ModelFileMissing):
        read(tmp_path / "nothing.gguf", "")
    whole = vocabulary(tmp_path, {"<|a|>": CONTROL} | {f"b{n}": NORMAL for n in range(5000)})
    with pytest.raises(ModelFileTruncated):
        read(cut(whole, tmp_path / "cut.gguf", 9000), "")
