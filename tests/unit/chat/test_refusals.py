"""What every route of the engines refuses before any of them is asked: by the field's own name."""

import json

import pytest

from eloquio.app import create_app
from fixtures.asgi import ask

QUESTION = [{"role": "user", "content": "Hi"}]
HALF = b'"\\ud800"'


@pytest.fixture
def refused(settings):
    """Asks the route, and gives the error's field and its sentence."""
    app = create_app(settings)

    def refused(route, body):
        headers = {"content-type": "application/json"}
        reply = ask(app, f"/v1{route}", method="POST", headers=headers, body=body)
        assert reply.status == 400, reply.body
        error = json.loads(reply.body)["error"]
        return error["param"], error["message"]

    return refused


@pytest.mark.parametrize(
    ("route", "field", "others"),
    [
        ("/chat/completions", "messages", b""),
        ("/completions", "prompt", b""),
        ("/messages", "messages", b', "max_tokens": 5'),
        ("/messages/count_tokens", "system", b""),
        ("/responses", "input", b""),
        ("/responses/input_tokens", "instructions", b', "input": "Hi"'),
        ("/tokenize", "content", b""),
        ("/rerank", "query", b', "documents": ["a"]'),
        ("/embeddings", "input", b""),
        ("/generate/stream", "messages", b""),
    ],
)
def test_half_a_character_is_refused_where_it_stands(refused, route, field, others):
    value = b'[{"role": "user", "content": %s}]' % HALF if field == "messages" else HALF
    param, message = refused(route, b'{"%s": %s%s}' % (field.encode(), value, others))
    assert param == field
    assert f"{field}: A text holds half of a surrogate pair" in message


@pytest.mark.parametrize(
    ("route", "fields", "param"),
    [
        ("/chat/completions", {"messages": QUESTION, "reasoning_format": "x"}, "reasoning_format"),
        ("/chat/completions", {"messages": QUESTION * 4097}, "messages"),
        ("/generate/stream", {"messages": QUESTION, "stop": ["x"]}, "stop"),
        ("/generate/stream", {"messages": QUESTION, "top_k": "3"}, "top_k"),
        ("/messages", {"messages": QUESTION, "max_tokens": "5"}, "max_tokens"),
        ("/messages", {"messages": QUESTION, "max_tokens": 5, "stream": "no"}, "stream"),
        ("/messages", {"messages": QUESTION * 4097, "max_tokens": 5}, "messages"),
        ("/responses", {"input": QUESTION * 4097}, "input"),
        ("/rerank", {"query": "a", "documents": ["b"], "return_documents": "yes"},
         "return_documents"),
        ("/rerank", {"query": "a", "documents": ["b"], "top_n": "1"}, "top_n"),
    ],
)  # fmt: skip
def test_a_field_that_is_wrong_is_named_as_the_client_named_it(refused, route, fields, param):
    assert refused(route, json.dumps(fields).encode())[0] == param
