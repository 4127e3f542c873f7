"""The parts of an answer come in order, whichever of them the model has."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eloquio.worker.answer_text import AnswerText, skipped_ids
from eloquio.worker.pieces import Call, Content, Piece, Reasoning
from eloquio.worker.reasoning import Harmony, Tags
from eloquio.worker.tool_calls import CallForm, call_form
from fixtures.cut_texts import cuts

TOOLS = [{"type": "function", "function": {"name": "time"}}]
THINK = Tags("<think>", "</think>", is_open=True)
CALL = '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>'


def read(answer: AnswerText, texts: list[str]) -> list[Piece]:
    return [piece for text in texts for piece in answer.feed(text)] + answer.end()


def summary(pieces: list[Piece]) -> list[tuple[type[Piece], str]]:
    """Neighbours of one kind as one."""
    made: list[tuple[type[Piece], str]] = []
    for piece in pieces:
        text = piece.name if isinstance(piece, Call) else piece.text
        if made and made[-1][0] is type(piece) and not isinstance(piece, Call):
            made[-1] = (type(piece), made[-1][1] + text)
        else:
            made.append((type(piece), text))
    return made


def test_reasoning_content_and_calls_come_in_their_order() -> None:
    for texts in cuts(f"so\n</think>\n\nI'll look.\n\n{CALL}\n{CALL}"):
        assert summary(read(AnswerText(THINK, CallForm(), TOOLS), texts)) == [
            (Reasoning, "so"),
            (Content, "I'll look."),
            (Call, "time"),
            (Call, "time"),
        ]


def test_a_call_in_the_reasoning_is_only_thought_of() -> None:
    pieces = read(AnswerText(THINK, CallForm(), TOOLS), [f"maybe {CALL}</think>no"])
    assert summary(pieces) == [(Reasoning, f"maybe {CALL}"), (Content, "no")]


def test_without_tools_nothing_is_a_call() -> None:
    for texts in cuts(CALL):
        assert summary(read(AnswerText(None, CallForm()), texts)) == [(Content, CALL)]


def test_channels_call_tools_too() -> None:
    text = "<|channel|>commentary to=functions.time<|message|>{}<|call|>"
    answer = AnswerText(Harmony("assistant"), CallForm(), TOOLS)
    assert summary(read(answer, [text])) == [(Call, "time")]


def test_special_tokens_stay_where_the_answer_is_read_by_them() -> None:
    special = {1: "</s>", 2: "[TOOL_CALLS]", 3: "[ARGS]", 4: "[THINK]", 5: "<|channel>", 6: "<pad>"}
    calls = call_form("[TOOL_CALLS]")
    assert skipped_ids(special, None, None) == {1, 2, 3, 4, 5, 6}
    assert skipped_ids(special, Tags("[THINK]", "[/THINK]"), calls) == {1, 5, 6}
    assert skipped_ids(special, Tags("<|channel>thought", "<channel|>"), None) == {1, 2, 3, 4, 6}


FORMS = {
    "hermes": (THINK, CallForm()),
    "mistral": (Tags("[THINK]", "[/THINK]"), call_form("[TOOL_CALLS]")),
    "llama": (None, call_form('{"name": x, "parameters": y}<|python_tag|>')),
    "gemma": (Tags("<|channel>thought", "<channel|>"), call_form("<|tool_call>")),
    "python": (None, call_form("[f(x=1)]")),
    "glm and coder": (THINK, call_form("<tool_call><function=")),
    "kimi": (None, call_form("<|im_middle|>")),
    "harmony": (Harmony("assistant"), CallForm()),
}
WORDS = """time weather a < [ { } ] " ( ) 🌍 ```json :0 , ; {} [time()] time(x=1) functions.
<think> </think> [THINK] [/THINK] <|channel>thought <channel|> [TOOL_CALLS] [ARGS] <|python_tag|>
<tool_call> </tool_call> <function=time> </function> <parameter=x> </parameter>
<arg_key> </arg_key> <arg_value> </arg_value> <|tool_call> call:time{ <|"|> <tool_call|>
<|tool_call_begin|> <|tool_call_argument_begin|> <|tool_call_end|>
<|channel|> <|message|> <|start|> <|end|> <|call|> analysis"""
FRAGMENTS = st.sampled_from(
    [*WORDS.split(), " ", "\n", " to=functions.", '{"name": "time", "arguments": {}}']
)


@pytest.mark.parametrize("family", FORMS)
@given(fragments=st.lists(FRAGMENTS, max_size=14), data=st.data())
@settings(max_examples=100, deadline=None)
def test_an_answer_reads_the_same_however_it_is_cut(
    family: str, fragments: list[str], data: st.DataObject
) -> None:
    reasoning, calls = FORMS[family]
    text = "".join(fragments)
    whole = summary(read(AnswerText(reasoning, calls, TOOLS), [text]))
    assert summary(read(AnswerText(reasoning, calls, TOOLS), list(text))) == whole
    at = data.draw(st.integers(0, len(text)))
    assert summary(read(AnswerText(reasoning, calls, TOOLS), [text[:at], text[at:]])) == whole
    if reasoning is None and not any(kind is Call for kind, _ in whole):
        assert "".join(said for _, said in whole) == text
