"""The ways in which models write a call of a tool, each read when it is whole."""
# ruff: noqa: RUF001 (the marks of DeepSeek are written with full-width bars)

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eloquio.worker.pieces import NamedArguments, NotACall, parsed_json

Schemas = Mapping[str, Mapping[str, Any]]
"""The properties of each tool's parameters, by the tool's name."""

_NAMED = re.compile(
    r"\s*(?:function<｜tool▁sep｜>)?(?:functions\.)?(?P<name>[\w.\-]+)(?::\d+)?\s*"
    r"(?:\[CALL_ID\](?P<id>\w+))?"
    r"(?:\[ARGS\]|<｜tool▁sep｜>|<\|tool_call_argument_begin\|>|```json|\s)*"
)
_FUNCTION = re.compile(r"<function=(?P<name>[^>\s]+)\s*>(?P<body>.*)</function>\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*<parameter=(?P<name>[^>]+)>(?P<value>.*?)</parameter>", re.DOTALL)
_INVOKE = re.compile(
    r'<(?P<mark>(?:｜DSML｜)?)invoke name="(?P<name>[^"]+)"\s*>(?P<body>.*)</(?P=mark)invoke>\s*',
    re.DOTALL,
)
_INVOKE_PARAMETER = re.compile(
    r'\s*<(?P<mark>(?:｜DSML｜)?)parameter name="(?P<name>[^"]+)"(?: string="(?P<string>\w+)")?\s*>'
    r"(?P<value>.*?)</(?P=mark)parameter>",
    re.DOTALL,
)
_KEYED = re.compile(r"\s*(?P<name>[\w.\-]+)\s*(?P<body>.*)</tool_call>", re.DOTALL)
_KEYED_ARGUMENT = re.compile(
    r"\s*<arg_key>(?P<name>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>", re.DOTALL
)
_GEMMA = re.compile(r"\s*call:(?P<name>[\w.\-]+)\s*(?P<body>\{.*\})", re.DOTALL)
_GEMMA_QUOTES = re.compile(r'<\|"\|>|<escape>')
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_][\w.\-]*)\s*:")
_ARGUMENT_KEYS = ("arguments", "parameters", "args")
_PYTHON_NAMES = {"true": True, "false": False, "null": None}


def json_calls(text: str) -> list[NamedArguments]:
    """`{"name": …, "arguments": {…}}`, or a list of such."""
    value = parsed_json(text)
    calls = [_json_call(item) for item in (value if isinstance(value, list) else [value])]
    if not calls:
        raise NotACall
    return calls


def _json_call(item: Any) -> NamedArguments:
    if not isinstance(item, dict):
        raise NotACall
    inner = item.get("function")
    fields = item | inner if isinstance(inner, dict) else item
    name = fields.get("name", fields.get("tool_name", inner))
    arguments: Any = next((fields[key] for key in _ARGUMENT_KEYS if key in fields), None)
    if isinstance(arguments, str):
        arguments = parsed_json(arguments or "{}")
    arguments = {} if arguments is None else arguments
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        raise NotACall
    given_id = fields.get("id")
    return NamedArguments(name, arguments, given_id if isinstance(given_id, str) else None)


def named_json(text: str) -> list[NamedArguments]:
    """A name, a separator of the model's own, and the arguments as JSON."""
    match = _NAMED.match(text)
    if match is None or not text.startswith("{", match.end()):
        raise NotACall
    arguments = parsed_json(text[match.end() :])
    if not isinstance(arguments, dict):
        raise NotACall
    return [NamedArguments(match["name"], arguments, match["id"])]


def is_name_of_json(header: str) -> bool:
    """Whether what stands before a `{` names the call of `named_json`."""
    return _NAMED.fullmatch(header) is not None


def function_tags(text: str, schemas: Schemas) -> list[NamedArguments]:
    """`<function=name><parameter=x>…</parameter></function>`, a value on lines of its own."""
    match = _FUNCTION.fullmatch(text)
    if match is None:
        raise NotACall
    schema = schemas.get(match["name"], {})
    arguments = {
        found["name"]: _typed(
            found["value"].removeprefix("\n").removesuffix("\n"), schema.get(found["name"])
        )
        for found in _each(_PARAMETER, match["body"])
    }
    return [NamedArguments(match["name"], arguments)]


def invoke_tags(text: str, schemas: Schemas) -> list[NamedArguments]:
    """`<invoke name="…"><parameter name="…">…</parameter></invoke>`, DeepSeek's marks or none."""
    match = _INVOKE.fullmatch(text)
    if match is None:
        raise NotACall
    schema = schemas.get(match["name"], {})
    arguments = {
        found["name"]: _typed(found["value"], _declared(found["string"], schema.get(found["name"])))
        for found in _each(_INVOKE_PARAMETER, match["body"])
    }
    return [NamedArguments(match["name"], arguments)]


def keyed_tags(text: str, schemas: Schemas) -> list[NamedArguments]:
    """GLM's `name <arg_key>x</arg_key><arg_value>…</arg_value></tool_call>`."""
    match = _KEYED.fullmatch(text)
    if match is None:
        raise NotACall
    schema = schemas.get(match["name"], {})
    arguments = {
        found["name"].strip(): _typed(found["value"], schema.get(found["name"].strip()))
        for found in _each(_KEYED_ARGUMENT, match["body"])
    }
    return [NamedArguments(match["name"], arguments)]


def gemma_call(text: str) -> list[NamedArguments]:
    """`call:name{key:<|"|>text<|"|>,other:1}`: JSON with bare keys and quotes of its own."""
    match = _GEMMA.fullmatch(text)
    if match is None:
        raise NotACall
    outside_and_inside = _GEMMA_QUOTES.split(match["body"])
    parts = [
        json.dumps(part) if at % 2 else _BARE_KEY.sub(r'\1"\2":', part)
        for at, part in enumerate(outside_and_inside)
    ]
    return [NamedArguments(match["name"], parsed_json("".join(parts)))]


def python_calls(text: str) -> list[NamedArguments]:
    """`[f(x=1), g(y="a")]` or one of them alone."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotACall from error
    items: Sequence[ast.expr] = (
        expression.elts if isinstance(expression, ast.List | ast.Tuple) else [expression]
    )
    calls = [_python_call(item) for item in items]
    if not calls:
        raise NotACall
    return calls


def _python_call(item: ast.expr) -> NamedArguments:
    if not isinstance(item, ast.Call) or item.args:
        raise NotACall
    name = ast.unparse(item.func).removesuffix(".call")
    arguments: dict[str, Any] = {}
    for keyword in item.keywords:
        if keyword.arg is None:
            raise NotACall
        try:
            arguments[keyword.arg] = ast.literal_eval(_WithJsonNames().visit(keyword.value))
        except (ValueError, TypeError, RecursionError) as error:
            raise NotACall from error
    return NamedArguments(name, arguments)


class _WithJsonNames(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_PYTHON_NAMES[node.id]) if node.id in _PYTHON_NAMES else node


def _each(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches, which have to fill the text."""
    at = 0
    while match := pattern.match(text, at):
        yield match
        at = match.end()
    if text[at:].strip():
        raise NotACall


def _declared(is_string: str | None, schema: Any) -> Any:
    """DeepSeek's model says itself whether a value is a string."""
    match is_string:
        case "true":
            return {"type": "string"}
        case "false":
            return {}
        case _:
            return schema


def _typed(text: str, schema: Any) -> Any:
    """The value that stands in a tag, which the tool's schema tells from a text."""
    if not isinstance(schema, dict):
        return text
    types = set(_types(schema))
    if "string" in types and not ("null" in types and text.strip() == "null"):
        return text
    try:
        return parsed_json(text)
    except NotACall:
        return {"True": True, "False": False, "None": None}.get(text.strip(), text)


def _types(schema: Mapping[str, Any]) -> Iterator[str]:
    declared = schema.get("type")
    if isinstance(declared, str):
        yield declared
    elif isinstance(declared, list):
        yield from (type_ for type_ in declared if isinstance(type_, str))
    for several in (schema.get("anyOf"), schema.get("oneOf")):
        for choice in several if isinstance(several, list) else ():
            if isinstance(choice, dict):
                yield from _types(choice)
