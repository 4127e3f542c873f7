"""What a model thinks is told apart from what it says, in each family's way of writing it."""

import json

import pytest

from eloquio.worker.harmony import HarmonyParser
from eloquio.worker.pieces import Call, Content, Piece, Reasoning
from eloquio.worker.reasoning import Harmony, ReasoningParser, Tags, reasoning_form
from fixtures.cut_texts import cuts

QWEN = """{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}
{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}"""
GPT_OSS = """{{- "<|start|>assistant<|channel|>analysis<|message|>" + message.thinking }}
{{- "<|end|>" }}{%- if add_generation_prompt %}<|start|>assistant{%- endif %}"""
GEMMA = "{%- if not enable_thinking %}{{- '<|channel>thought\\n<channel|>' -}}{%- endif -%}"
THINK = Tags("<think>", "</think>")


def joined(pieces: list[Piece]) -> tuple[str, str]:
    reasoning = "".join(piece.text for piece in pieces if isinstance(piece, Reasoning))
    content = "".join(piece.text for piece in pieces if isinstance(piece, Content))
    return reasoning, content


@pytest.mark.parametrize(
    ("template", "prompt", "form"),
    [
        (QWEN, "<|im_start|>assistant\n", THINK),
        (QWEN, "<|im_start|>assistant\n<think>\n\n</think>\n\n", THINK),
        (QWEN, "<|im_start|>assistant\n<think>\n", Tags("<think>", "</think>", is_open=True)),
        (QWEN, "user\nwhat is <think>?<|im_end|>\n<|im_start|>assistant\n", THINK),
        ("[SYSTEM_PROMPT]…[THINK]…[/THINK]", "[INST]hi[/INST]", Tags("[THINK]", "[/THINK]")),
        ("{{ '<seed:think>' }}", "assistant\n", Tags("<seed:think>", "</seed:think>")),
        (GEMMA, "<|turn>model\n", Tags("<|channel>thought", "<channel|>")),
        (
            GEMMA,
            "<|turn>model\n<|channel>thought\n<channel|>",
            Tags("<|channel>thought", "<channel|>"),
        ),
        (
            "Write your thoughts between <think></think>, the answer in <response></response>.",
            "<|start_of_role|>assistant<|end_of_role|>",
            Tags("<think>", "</think>", ("<response>", "</response>")),
        ),
        (GPT_OSS, "<|start|>user<|message|>hi<|end|><|start|>assistant", Harmony("assistant")),
        ("{% for message in messages %}{{ message.content }}{% endfor %}", "hi", None),
    ],
)
def test_the_form_is_that_of_the_template_and_the_end_of_the_prompt(
    template: str, prompt: str, form: Tags | Harmony | None
) -> None:
    assert reasoning_form(template, prompt) == form


@pytest.mark.parametrize(
    ("continued", "is_open"),
    [("<think>\nI was", True), ("<think>\nSo.\n</think>\n\nThe", False), ("The", False)],
)
def test_an_answer_that_is_continued_may_be_in_the_middle_of_its_reasoning(
    continued: str, is_open: bool
) -> None:
    form = reasoning_form(QWEN, f"<|im_start|>assistant\n{continued}", continued)
    assert form == Tags("<think>", "</think>", is_open=is_open)


@pytest.mark.parametrize(
    ("tags", "text", "reasoning", "content"),
    [
        (THINK, "<think>\nLet me see.\n</think>\n\nParis.", "Let me see.", "Paris."),
        (THINK, "\n<think>so</think>yes", "so", "yes"),
        (THINK, "Paris.", "", "Paris."),
        (THINK, "  indented\n", "", "  indented\n"),
        (THINK, "<thin ice", "", "<thin ice"),
        (THINK, "<thin", "", "<thin"),
        (THINK, "", "", ""),
        (THINK, "<think>never done\n a < b", "never done\n a < b", ""),
        (THINK, "<think>cut in </thi", "cut in </thi", ""),
        (THINK, "<think></think>\n\nyes", "", "yes"),
        (THINK, "<think>a</think>\n<think>b</think>\nc", "ab", "c"),
        (
            THINK,
            "The tag <think> opens, </think> ends.",
            "",
            "The tag <think> opens, </think> ends.",
        ),
        (Tags("<think>", "</think>", is_open=True), "\nso\n</think>\n\nyes", "so", "yes"),
        (Tags("<think>", "</think>", is_open=True), "<think>\nso</think>yes", "so", "yes"),
        (Tags("<think>", "</think>", is_open=True), "</think>yes", "", "yes"),
        (Tags("<think>", "</think>", is_open=True), "so 日本 🌍", "so 日本 🌍", ""),
        (Tags("[THINK]", "[/THINK]"), "[THINK]so[/THINK]yes", "so", "yes"),
        (Tags("<seed:think>", "</seed:think>"), "<seed:think>so</seed:think>yes", "so", "yes"),
        (
            Tags("<|channel>thought", "<channel|>"),
            "<|channel>thought\nso<channel|>yes",
            "so",
            "yes",
        ),
        (Tags("<|channel>thought", "<channel|>"), "<|channel>thought\n<channel|>yes", "", "yes"),
        (
            Tags("<think>", "</think>", ("<response>", "</response>")),
            "<think>so</think>\n<response>\nyes</response>",
            "so",
            "yes",
        ),
        (
            Tags("<|begin_of_thought|>", "<|end_of_thought|>", ("<|begin_of_solution|>",)),
            "<|begin_of_thought|>\n\nso\n\n<|end_of_thought|>\n\n<|begin_of_solution|>\n\nyes",
            "so",
            "yes",
        ),
    ],
)
def test_reasoning_and_content_are_told_apart_however_the_text_is_cut(
    tags: Tags, text: str, reasoning: str, content: str
) -> None:
    for pieces in cuts(text):
        parser = ReasoningParser(tags)
        told = [piece for text in pieces for piece in parser.feed(text)] + parser.end()
        assert joined(told) == (reasoning, content), pieces
        assert all(isinstance(piece, Reasoning | Content) and piece.text for piece in told)


def test_reasoning_and_content_flow_as_they_come() -> None:
    parser = ReasoningParser(THINK)
    assert parser.feed("<think>one ") == [Reasoning("one")]
    assert parser.feed("two</thi") == [Reasoning(" two")]
    assert parser.feed("nk>\n") == []
    assert parser.feed("three ") == [Content("three ")]


ANALYSIS = "<|channel|>analysis<|message|>Let me see.<|end|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>Paris."
WEATHER = '{"city": "}\\" 🌍"}'


@pytest.mark.parametrize(
    ("text", "reasoning", "content", "called"),
    [
        (ANALYSIS + FINAL, "Let me see.", "Paris.", []),
        (ANALYSIS + FINAL + "<|return|>", "Let me see.", "Paris.", []),
        (ANALYSIS.removesuffix("<|end|>") + FINAL, "Let me see.", "Paris.", []),
        ("<|channel|>analysis<|message|>never do", "never do", "", []),
        ("Plain words.", "", "Plain words.", []),
        ("to be or not", "", "to be or not", []),
        (
            "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>"
            f"{WEATHER}<|call|>",
            "",
            "",
            [("weather", {"city": '}" 🌍'})],
        ),
        (
            ANALYSIS + "<|start|>assistant<|channel|>commentary<|message|>I'll look.<|end|>"
            "<|start|>assistant to=functions.weather<|channel|>commentary json<|message|>{}",
            "Let me see.",
            "I'll look.",
            [("weather", {})],
        ),
        (
            "<|channel|>commentary to=weather<|message|>{}<|call|>"
            "<|start|>assistant<|channel|>commentary to=functions.other<|message|>{}<|call|>",
            "",
            "",
            [("weather", {}), ("other", {})],
        ),
        (
            " to=functions.weather<|channel|>commentary<|message|>{}<|call|>",
            "",
            "",
            [("weather", {})],
        ),
        ("<|channel|>commentary to=functions.weather<|message|>no json<|call|>", "", "no json", []),
        ("<|channel|>analysis to=python<|message|>print(1)<|call|>", "print(1)", "", []),
        (ANALYSIS + ANALYSIS, "Let me see.\nLet me see.", "", []),
    ],
)
def test_channels_are_reasoning_content_and_calls(
    text: str, reasoning: str, content: str, called: list[tuple[str, dict[str, str]]]
) -> None:
    for pieces in cuts(text):
        parser = HarmonyParser(Harmony("assistant"), ["weather"])
        told = [piece for text in pieces for piece in parser.feed(text)] + parser.end()
        assert joined(told) == (reasoning, content), pieces
        calls = [piece for piece in told if isinstance(piece, Call)]
        assert [(call.name, json.loads(call.arguments)) for call in calls] == called
        assert [call.index for call in calls] == list(range(len(calls)))


def test_without_tools_a_message_to_one_is_content() -> None:
    parser = HarmonyParser(Harmony("assistant"))
    text = "<|channel|>commentary to=functions.weather<|message|>{}<|call|>"
    assert joined(parser.feed(text) + parser.end()) == ("", "{}")


def test_a_message_that_the_prompt_has_begun_goes_on_in_its_channel() -> None:
    prompt = "<|start|>assistant<|channel|>analysis<|message|>I was <"
    form = reasoning_form(GPT_OSS, prompt, "I was <")
    assert isinstance(form, Harmony)
    parser = HarmonyParser(form)
    told = parser.feed("thinking.<|end|>") + parser.feed(FINAL) + parser.end()
    assert told == [Reasoning("thinking."), Content("Paris.")]
