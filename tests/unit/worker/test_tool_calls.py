# ruff: noqa: RUF001 (the marks of DeepSeek are written with full-width bars)
"""Calls of tools are read in each family's way of writing them; nothing that is said is lost."""

import json
import time
from typing import Any

import pytest

from eloquio.worker.pieces import Call, Content
from eloquio.worker.tool_calls import ToolCallParser, call_form
from fixtures.cut_texts import cuts

HERMES = """{{- "within <tool_call></tool_call> XML tags:\\n<tool_call>\\n{\\"name\\":" }}"""
CODER = """{{- '<tool_call>\\n<function=example_function_name>\\n<parameter=example_parameter_1>\\n'
}}value_1\\n</parameter>\\n</function>\\n</tool_call>"""
GLM = "<tool_call>{function-name}\\n<arg_key>{key}</arg_key>\\n<arg_value>{value}</arg_value>"
LLAMA = """{{- 'Respond in the format {"name": function name, "parameters": dictionary of argument
name and its value}. Do not use variables.' }}{{- "<|python_tag|>" + tool_call.name }}"""
MISTRAL = "{{- '[AVAILABLE_TOOLS] [' }}{{- '[TOOL_CALLS] [' }}{{- out[:-1] }}"
DEEPSEEK = "{{'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + name + '<｜tool▁sep｜>' + arguments}}"
DEEPSEEK_32 = '<｜DSML｜function_calls>\\n<｜DSML｜invoke name="$FUNCTION_NAME">'
GRANITE = "{{- '<|start_of_role|>assistant_tool_call<|end_of_role|><|tool_call|>[' }}"
PHI = "{{ message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' + '<|end|>' }}"
PYTHONIC = "You MUST put it in the format of [func_name1(params_name1=params_value1), func_name2()]"
GEMMA_4 = "{{- '<|tool_call>call:' + function['name'] + '{' -}}…{{- '}<tool_call|>' -}}"
FUNCTION_GEMMA = "{{- '<start_function_call>call:' + name + '{' -}}'}<end_function_call>'"
KIMI = "{{ '<|im_system|>tool_declare<|im_middle|>' -}}{{- tools | tojson -}}"
MINIMAX = '<minimax:tool_call>\\n<invoke name="tool-name-1">'
SEED = "<seed:tool_call>\\n<function=example_function_name>\\n<parameter=example_parameter_1>"
LFM = "List of tools: <|tool_list_start|>["
HUNYUAN = "{{ '<tool_calls><tool_call>' + name + '\\n```json\\n' + arguments + '\\n```' }}"

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "hourly": {"type": "boolean"},
                    "where": {"type": "object"},
                    "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
            },
        },
    },
    {"type": "function", "function": {"name": "time"}},
]
AWKWARD = 'a "quoted" } and ] and </tool_call> and \\ and\nnew line 🌍 日本'


def parsed(template: str, pieces: list[str]) -> tuple[str, list[tuple[str, Any]]]:
    parser = ToolCallParser(call_form(template), TOOLS)
    told = [piece for text in pieces for piece in parser.feed(text)] + parser.end()
    calls = [piece for piece in told if isinstance(piece, Call)]
    assert [call.index for call in calls] == list(range(len(calls)))
    assert len({call.id for call in calls}) == len(calls)
    content = "".join(piece.text for piece in told if isinstance(piece, Content))
    return content, [(call.name, json.loads(call.arguments)) for call in calls]


def in_json(name: str, arguments: Any, key: str = "arguments") -> str:
    return json.dumps({"name": name, key: arguments}, ensure_ascii=False)


PARIS = ("weather", {"city": "Paris"})
ONE = in_json(*PARIS)
TWO = in_json("time", {})


@pytest.mark.parametrize(
    ("template", "text", "content", "called"),
    [
        (HERMES, f"<tool_call>\n{ONE}\n</tool_call>", "", [PARIS]),
        (HERMES, f"I'll look.\n\n<tool_call>{ONE}</tool_call>\n", "I'll look.", [PARIS]),
        (
            HERMES,
            f"<tool_call>{ONE}</tool_call>\n<tool_call>{TWO}</tool_call><tool_call>{ONE}</tool_call>",
            "",
            [PARIS, ("time", {}), PARIS],
        ),
        (HERMES, f"<tool_call>{ONE}\n{TWO}</tool_call>", "", [PARIS, ("time", {})]),
        (HERMES, f"<tool_call>[{ONE}, {TWO}]</tool_call>", "", [PARIS, ("time", {})]),
        (HERMES, f"<tool_call>{ONE}", "", [PARIS]),
        (HERMES, f"<tool_call>{ONE}</tool_call> and so on", " and so on", [PARIS]),
        (
            HERMES,
            f"<tool_call>{in_json('weather', {'city': AWKWARD})}</tool_call>",
            "",
            [("weather", {"city": AWKWARD})],
        ),
        (
            HERMES,
            '<tool_call>{"name": "weather", "arguments": {"city": "a\nb"}}</tool_call>',
            "",
            [("weather", {"city": "a\nb"})],
        ),
        (
            HERMES,
            '<tool_call>{"name": "weather", "arguments": "{\\"city\\": \\"Paris\\"}"}</tool_call>',
            "",
            [PARIS],
        ),
        (HERMES, '<tool_call>{"name": "time", "arguments": null}</tool_call>', "", [("time", {})]),
        (
            CODER,
            "<tool_call>\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n"
            "<parameter=days>\n3\n</parameter>\n<parameter=hourly>\nTrue\n</parameter>\n"
            '<parameter=where>\n{"x": [1]}\n</parameter>\n<parameter=note>\nnull\n</parameter>\n'
            "</function>\n</tool_call>",
            "",
            [
                (
                    "weather",
                    {"city": "Paris", "days": 3, "hourly": True, "where": {"x": [1]}, "note": None},
                )
            ],
        ),
        (
            CODER,
            "<function=weather>\n<parameter=city>\n42\n\n</function></tool_call>\n</parameter>\n"
            "</function>\n</tool_call>\n<tool_call><function=time></function></tool_call>",
            "",
            [("weather", {"city": "42\n\n</function></tool_call>"}), ("time", {})],
        ),
        (
            SEED,
            "<seed:tool_call>\n<function=weather>\n<parameter=city>Paris</parameter>\n</function>\n"
            "</seed:tool_call>",
            "",
            [PARIS],
        ),
        (
            GLM,
            "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>a </tool_call> b</arg_value>\n"
            "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call><tool_call>time</tool_call>",
            "",
            [("weather", {"city": "a </tool_call> b", "days": 3}), ("time", {})],
        ),
        (LLAMA, in_json(*PARIS, key="parameters"), "", [PARIS]),
        (LLAMA, "\n<|python_tag|>" + in_json(*PARIS, key="parameters"), "", [PARIS]),
        (LLAMA, '<|python_tag|>weather.call(city="Paris")', "", [PARIS]),
        (LLAMA, f"{ONE}; {TWO}", "", [PARIS, ("time", {})]),
        (LLAMA, '{"type": "function", "function": ' + ONE + "}", "", [PARIS]),
        (MISTRAL, f"[TOOL_CALLS] [{ONE}, {TWO}]", "", [PARIS, ("time", {})]),
        (
            MISTRAL,
            '[TOOL_CALLS]weather[ARGS]{"city": "[TOOL_CALLS]"}[TOOL_CALLS]time[ARGS]{}',
            "",
            [("weather", {"city": "[TOOL_CALLS]"}), ("time", {})],
        ),
        (MISTRAL, '[TOOL_CALLS]weather[CALL_ID]abcdefghi[ARGS]{"city": "Paris"}', "", [PARIS]),
        (
            DEEPSEEK,
            "Well.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n"
            '{"city": "Paris"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>'
            "time\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "Well.",
            [PARIS, ("time", {})],
        ),
        (
            DEEPSEEK,
            '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"city": "Paris"}'
            "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "",
            [PARIS],
        ),
        (
            DEEPSEEK_32,
            '<｜DSML｜function_calls>\n<｜DSML｜invoke name="weather">\n'
            '<｜DSML｜parameter name="city" string="true">a </｜DSML｜invoke> b'
            "</｜DSML｜parameter>\n"
            '<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n'
            "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
            "",
            [("weather", {"city": "a </｜DSML｜invoke> b", "days": 3})],
        ),
        (GRANITE, f"<|tool_call|>[{ONE}]", "", [PARIS]),
        (PHI, f"<|tool_call|>[{in_json(*PARIS)}]<|/tool_call|>", "", [PARIS]),
        (PHI, f"functools[{in_json(*PARIS)}]", "", [PARIS]),
        (
            PYTHONIC,
            '[weather(city="a ) ] \' b", days=3, hourly=true, where={"x": [1, None]}), time()]',
            "",
            [
                (
                    "weather",
                    {"city": "a ) ] ' b", "days": 3, "hourly": True, "where": {"x": [1, None]}},
                ),
                ("time", {}),
            ],
        ),
        (
            GEMMA_4,
            '<|tool_call>call:weather{city:<|"|>a "b": } 🌍<|"|>,days:3,'
            'where:{x:[<|"|>y<|"|>,true]}}<tool_call|>'
            "<|tool_call>call:time{}<tool_call|>",
            "",
            [
                ("weather", {"city": 'a "b": } 🌍', "days": 3, "where": {"x": ["y", True]}}),
                ("time", {}),
            ],
        ),
        (
            FUNCTION_GEMMA,
            "<start_function_call>call:weather{city:<escape>Paris<escape>}<end_function_call>",
            "",
            [PARIS],
        ),
        (
            KIMI,
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0"
            '<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|>'
            "<|tool_call_begin|>functions.time:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
            "<|tool_calls_section_end|>",
            "",
            [PARIS, ("time", {})],
        ),
        (
            MINIMAX,
            '<minimax:tool_call>\n<invoke name="weather">\n'
            '<parameter name="city">Paris</parameter>\n</invoke>\n'
            '<invoke name="time">\n</invoke>\n</minimax:tool_call>',
            "",
            [PARIS, ("time", {})],
        ),
        (LFM, '<|tool_call_start|>[weather(city="Paris")]<|tool_call_end|>ok', "ok", [PARIS]),
        (LFM, f"<|tool_call_start|>[{ONE}]<|tool_call_end|>", "", [PARIS]),
        (
            HUNYUAN,
            '<tool_calls>\n<tool_call>weather\n```json\n{"city": "Paris"}\n```</tool_call>\n'
            "</tool_calls>",
            "",
            [PARIS],
        ),
    ],
)
def test_calls_are_read_however_the_text_is_cut(
    template: str, text: str, content: str, called: list[tuple[str, Any]]
) -> None:
    for pieces in cuts(text):
        assert parsed(template, pieces) == (content, called), pieces


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (HERMES, "Just words, with 1 < 2 and <tool.\n"),
        (HERMES, "<tool_call>{'name': 'weather'}</tool_call> then"),
        (HERMES, '<tool_call>{"name": "weather", "arguments": {"city": "Par'),
        (HERMES, '<tool_call>{"name": "weather", "arguments": {"days": 1}</tool_call> end'),
        (HERMES, '<tool_call>{"name": "weather", "arguments": {"days": NaN}}</tool_call>'),
        (HERMES, '<tool_call>{"name": "weather", "arguments": {"days": 1e999}}</tool_call>'),
        (HERMES, '<tool_call>{"name": "weather", "arguments": [1]}</tool_call>'),
        (HERMES, '<tool_call>{"city": "Paris"}</tool_call>'),
        (HERMES, "The tag <tool_call> begins a call."),
        (HERMES, "<tool_call>"),
        (HERMES, "  <tool_call>  "),
        (HERMES, in_json(*PARIS)),
        (CODER, "<tool_call>\n<function=weather>\n<parameter=city>\nPar"),
        (CODER, "<tool_call><function=weather>words</function></tool_call>"),
        (CODER, "<tool_call><function=weather></tool_call>"),
        (GLM, "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Par"),
        (LLAMA, '{"answer": {"name": "weather"}}'),
        (LLAMA, in_json("unknown", {}, key="parameters")),
        (LLAMA, "{weather}"),
        (LLAMA, "[1, 2]"),
        (LLAMA, "<|python_tag|>print(1 + 1)"),
        (MISTRAL, "[TOOL_CALLS] I can't call anything."),
        (PYTHONIC, "[a link](https://example.org) and more"),
        (PYTHONIC, "[weather(city)]"),
        (PYTHONIC, "[unknown(x=1)]"),
        (PYTHONIC, "[weather(city=open('/etc/passwd'))]"),
        (GEMMA_4, "<|tool_call>call:weather{city:<tool_call|>"),
    ],
)
def test_what_is_no_call_is_content_to_the_letter(template: str, text: str) -> None:
    for pieces in cuts(text):
        assert parsed(template, pieces) == (text, []), pieces


def test_a_call_after_one_that_is_broken_is_read() -> None:
    broken = "<tool_call>{broken}</tool_call>"
    for pieces in cuts(f"{broken}\n<tool_call>{ONE}</tool_call>"):
        assert parsed(HERMES, pieces) == (broken, [PARIS])


def test_content_flows_and_a_call_comes_as_soon_as_it_is_whole() -> None:
    parser = ToolCallParser(call_form(HERMES), TOOLS)
    assert parser.feed("I'll look.\n<tool") == [Content("I'll look.")]
    assert parser.feed('_call>{"name": "time", "arguments": {') == []
    (call,) = parser.feed("}}")
    assert isinstance(call, Call)
    assert (call.index, call.name, call.arguments) == (0, "time", "{}")
    assert parser.feed("</tool_call>") == []
    assert parser.end() == []


def test_an_answer_in_json_flows_once_it_can_be_no_call() -> None:
    parser = ToolCallParser(call_form(LLAMA), TOOLS)
    assert parser.feed('{"capital"') == [Content("{"), Content('"capital"')]
    assert parser.feed(': "Paris"') == [Content(': "Paris"')]


def test_ids_are_the_models_own_or_of_nine_letters_and_digits() -> None:
    given = '[TOOL_CALLS][{"name": "time", "arguments": {}, "id": "abc123XYZ"}, ' + TWO + "]"
    first, second = ToolCallParser(call_form(MISTRAL), TOOLS).feed(given)
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert first.id == "abc123XYZ"
    assert len(second.id) == 9
    assert second.id.isalnum()


def test_half_a_surrogate_pair_in_an_argument_is_json_that_can_be_sent() -> None:
    text = '<tool_call>{"name": "weather", "arguments": {"city": "\\ud83d"}}</tool_call>'
    (call,) = ToolCallParser(call_form(HERMES), TOOLS).feed(text)
    assert isinstance(call, Call)
    call.arguments.encode()
    assert json.loads(call.arguments) == {"city": "\ud83d"}


def test_arguments_nested_without_end_are_content() -> None:
    text = '<tool_call>{"name": "time", "arguments": ' + '{"a":' * 100_000 + "1" + "}" * 100_001
    content, calls = parsed(HERMES, [text])
    assert (content, calls) == (text, [])


def test_long_arguments_are_read_once_and_not_for_every_piece() -> None:
    value = 'x"' * 50_000
    text = f"<tool_call>{in_json('weather', {'city': value})}</tool_call>"
    pieces = [text[at : at + 10] for at in range(0, len(text), 10)]
    begun = time.process_time()
    assert parsed(HERMES, pieces) == ("", [("weather", {"city": value})])
    # A fraction of a second; reading all of it for each piece takes many minutes.
    assert time.process_time() - begun < 20


def test_a_template_without_marks_of_its_own_is_asked_in_hermes_way() -> None:
    assert parsed("{{ messages }}", [f"<tool_call>{ONE}</tool_call>"]) == ("", [PARIS])
