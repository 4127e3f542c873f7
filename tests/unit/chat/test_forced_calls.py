"""A required call: the schema that it is asked for by, and how it is found in its text."""

import json

import pytest

from eloquio.chat.forced_calls import CallsInText, response_format
from eloquio.errors import ToolNotCalled
from fixtures.calling import TOOLS

ARGUMENTS = [
    {},
    {"x": "1"},
    {"x": '}]{["\\', "y": [{"z": [[]]}, {}], "\N{WAVING HAND SIGN}": None},
]
NAMES = ["alpha", "beta", "alpha"]


def schema_of(tools, *, is_one=False):
    wanted = response_format(tools, is_one=is_one)
    assert wanted["type"] == "json_schema"
    return wanted["json_schema"]["schema"]


def function(parameters):
    return {"type": "function", "function": {"name": "f", "parameters": parameters}}


def called(pieces):
    """Name and arguments of each call, as a client puts them together."""
    calls = {}
    for piece in pieces:
        name, arguments = calls.get(piece["index"], ("", ""))
        told = piece["function"]
        calls[piece["index"]] = (name + told.get("name", ""), arguments + told["arguments"])
    return [(name, json.loads(arguments)) for name, arguments in calls.values()]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_calls_are_found_however_their_text_is_cut(size, indent):
    wanted = list(zip(NAMES, ARGUMENTS, strict=True))
    calls = [{"name": name, "arguments": arguments} for name, arguments in wanted]
    text = json.dumps(calls, indent=indent)
    found = CallsInText()
    pieces = [
        piece for at in range(0, len(text), size) for piece in found.feed(text[at : at + size])
    ]
    assert called(pieces) == wanted
    assert found.has_called
    begun = [piece for piece in pieces if "id" in piece]
    assert [piece["index"] for piece in begun] == [0, 1, 2]
    assert len({piece["id"] for piece in begun}) == 3


def test_arguments_are_told_as_they_come():
    found = CallsInText()
    assert found.feed('[{"name": "alpha", "arguments": ') == []
    [begun] = found.feed('{"x')
    assert begun["function"] == {"name": "alpha", "arguments": '{"x'}
    assert found.feed('": "a') == [{"index": 0, "function": {"arguments": '": "a'}}]


@pytest.mark.parametrize("text", ["Hello", '{"name": "alpha"', '[{"title": {', "[[[", "null"])
def test_a_text_that_is_no_list_of_calls_is_an_error(text):
    with pytest.raises(ToolNotCalled):
        CallsInText().feed(text)


def test_a_schema_takes_the_calls_of_its_functions():
    schema = schema_of(TOOLS)
    assert schema["minItems"] == 1
    assert "maxItems" not in schema
    names = [call["properties"]["name"]["const"] for call in schema["items"]["anyOf"]]
    assert names == ["alpha", "beta"]
    assert schema["$defs"]["alpha"] == TOOLS[0]["function"]["parameters"]


def test_of_one_call_there_is_no_second():
    assert schema_of(TOOLS, is_one=True)["maxItems"] == 1


def test_a_function_s_references_point_to_where_its_schema_is_now():
    parameters = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/y"}, "self": {"$ref": "#"}, "$ref": {"type": "null"}},
        "$defs": {"y": {"type": "string"}},
    }
    moved = schema_of([function(parameters)])["$defs"]["f"]
    assert moved["properties"] == {
        "x": {"$ref": "#/$defs/f/$defs/y"},
        "self": {"$ref": "#/$defs/f"},
        "$ref": {"type": "null"},
    }


@pytest.mark.parametrize("parameters", [None, {}, {"properties": {}}])
def test_a_function_without_a_type_takes_an_object(parameters):
    assert schema_of([function(parameters)])["$defs"]["f"]["type"] == "object"
