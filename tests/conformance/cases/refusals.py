"""What a chat refuses, as the client's own exceptions: by the field, and before any byte."""

from typing import Any

import openai

from conformance.case import Cases
from conformance.target import QUESTION, Target, refused
from fixtures.calling import TOOLS

cases = Cases("refusals")
case = cases.case

# The smallest GIF: one pixel.
PICTURE = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def user(content: object) -> list[object]:
    return [{"role": "user", "content": content}]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no messages": ({"messages": []}, "messages"),
    "messages that are a text": ({"messages": "Hi"}, "messages"),
    "a message without a role": ({"messages": [{"content": "Hi"}]}, "messages.0.role"),
    "an unknown role": ({"messages": [{"role": "robot", "content": "Hi"}]}, "messages.0.role"),
    "content that is a number": ({"messages": user(5)}, "messages.0.content"),
    "content that is missing": ({"messages": [{"role": "user"}]}, "messages.0"),
    "an empty list of parts": ({"messages": user([])}, "messages.0.content"),
    "a part without a type": ({"messages": user([{"text": "Hi"}])}, "messages.0.content"),
    "a temperature below zero": ({"temperature": -1}, "temperature"),
    "a temperature above two": ({"temperature": 2.5}, "temperature"),
    "a temperature that is a text": ({"temperature": "warm"}, "temperature"),
    "a top_p above one": ({"top_p": 7}, "top_p"),
    "no token to say": ({"max_tokens": 0}, "max_tokens"),
    "half a token to say": ({"max_tokens": 1.5}, "max_tokens"),
    "two limits that differ": ({"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens"),
    "a stop that is a number": ({"stop": 5}, "stop"),
    "an empty stop": ({"stop": [""]}, "stop"),
    "no choice": ({"n": 0}, "n"),
    "a seed that is a text": ({"seed": "lucky"}, "seed"),
    "a presence penalty above two": ({"presence_penalty": 3}, "presence_penalty"),
    "a frequency penalty below minus two": ({"frequency_penalty": -3}, "frequency_penalty"),
    "a bias that is a list": ({"logit_bias": [1]}, "logit_bias"),
    "a bias above a hundred": ({"logit_bias": {"5": 101}}, "logit_bias.5"),
    "more than twenty probabilities": ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    "top_logprobs without logprobs": ({"top_logprobs": 2}, "top_logprobs"),
    "stream options without a stream": (
        {"stream_options": {"include_usage": True}},
        "stream_options",
    ),
    "a form that is a text": ({"response_format": "json"}, "response_format"),
    "an unknown form": ({"response_format": {"type": "xml"}}, "response_format.type"),
    "a schema that is missing": ({"response_format": {"type": "json_schema"}}, "response_format"),
    "a choice without tools": ({"tool_choice": "required"}, "tool_choice"),
    "an unknown form of reasoning": ({"reasoning_format": "x"}, "reasoning_format"),
    "more messages than a template can take": ({"messages": user("Hi") * 4097}, "messages"),
    "more tools than a template can take": ({"tools": TOOLS * 257}, "tools"),
    "an unknown choice of tools": ({"tools": TOOLS, "tool_choice": "maybe"}, "tool_choice"),
    "a choice that is not among the tools": (
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "gamma"}}},
        "tool_choice",
    ),
    "a tool without a name": (
        {"tools": [{"type": "function", "function": {}}]},
        "tools.0.function.name",
    ),
    "an unknown effort": ({"reasoning_effort": "heroic"}, "reasoning_effort"),
    "a stream that is a text": ({"stream": "please"}, "stream"),
    "the older name of tools": ({"functions": [{"name": "alpha"}]}, "functions"),
}


@cases.each(WRONG)
def it_is_a_bad_request(target: Target, fields: dict[str, Any], param: str) -> None:
    asked = {"model": target.model, "messages": QUESTION} | fields
    error = refused(
        openai.BadRequestError,
        lambda: target.openai.chat.completions.create(**_through_the_client(asked)),
    )
    assert (error.param, error.code) == (param, "invalid_request")
    assert error.type == "invalid_request_error"
    assert error.body["message"]


def _through_the_client(asked: dict[str, Any]) -> dict[str, Any]:
    """The client refuses some of it itself, unless it comes as an extra."""
    return {"model": "", "messages": [], "extra_body": asked}


NOT_HERE: dict[str, tuple[dict[str, Any], str]] = {
    "tools that the server runs": ({"enable_tools": True}, "enable_tools"),
    "spoken answers": ({"modalities": ["text", "audio"]}, "modalities"),
    "a search of the web": ({"web_search_options": {}}, "web_search_options"),
    "an answer that is stored": ({"store": True}, "store"),
    "probabilities beside tools": ({"logprobs": True, "tools": TOOLS}, "logprobs"),
}


@cases.each(NOT_HERE)
def it_is_said_that_it_cannot_be_had(target: Target, fields: dict[str, Any], param: str) -> None:
    error = refused(openai.APIStatusError, lambda: target.chat(extra_body=fields))
    assert (error.status_code, error.param, error.code) == (501, param, "not_implemented")


@case()
def an_unknown_model_is_not_found(target: Target) -> None:
    error = refused(openai.NotFoundError, lambda: target.chat(model="org/nothing"))
    assert error.type == "invalid_request_error"
    assert error.request_id


@case()
def a_stream_is_refused_before_it_begins(target: Target) -> None:
    refused(openai.NotFoundError, lambda: target.chat(model="org/nothing", stream=True))
    refused(openai.BadRequestError, lambda: target.chat(messages=[], stream=True))


@case()
def a_conversation_beyond_the_context_is_refused_with_the_numbers(target: Target) -> None:
    [model] = [each for each in target.openai.models.list() if each.id == target.model]
    words = "word " * (model.context_length + 500)
    for stream in (False, True):
        error = refused(
            openai.BadRequestError, lambda stream=stream: target.chat(user(words), stream=stream)
        )
        assert error.code == "context_length_exceeded"
        assert str(model.context_length) in error.message


@case()
def a_picture_for_a_model_that_cannot_see_is_refused(target: Target) -> None:
    part = {"type": "image_url", "image_url": {"url": PICTURE}}
    error = refused(openai.BadRequestError, lambda: target.chat(user([part])))
    assert error.code == "model_cannot_see"


@case()
def a_body_that_is_no_json_is_a_bad_request(target: Target) -> None:
    headers = {"content-type": "application/json"}
    for body in (b"", b"{", b"[1]", b'"Hi"', b'{"messages": "\xff"}'):
        reply = target.http.post("/chat/completions", content=body, headers=headers)
        assert reply.status_code == 400
        error = reply.json()["error"]
        assert {"message", "type", "code", "param"} <= set(error)


@case()
def half_a_character_is_a_bad_request(target: Target) -> None:
    body = b'{"messages": [{"role": "user", "content": "\\ud83d"}]}'
    headers = {"content-type": "application/json"}
    reply = target.http.post("/chat/completions", content=body, headers=headers)
    assert reply.status_code == 400
    assert reply.json()["error"]["param"].startswith("messages")


@case()
def an_address_that_is_not_there_is_told_as_openai_tells_it(target: Target) -> None:
    error = refused(openai.NotFoundError, lambda: target.openai.fine_tuning.jobs.list())
    assert error.type == "invalid_request_error"
    assert error.code


@case("completions")
def a_text_between_two_others_cannot_be_had(target: Target) -> None:
    error = refused(openai.APIStatusError, lambda: target.complete("def f():", suffix="return 1"))
    assert (error.status_code, error.param) == (501, "suffix")


@case("completions")
def the_best_of_several_cannot_be_had(target: Target) -> None:
    error = refused(openai.APIStatusError, lambda: target.complete("Once", best_of=3))
    assert (error.status_code, error.param) == (501, "best_of")


WRONG_COMPLETIONS: dict[str, tuple[dict[str, Any], str]] = {
    "no prompt": ({"prompt": []}, "prompt"),
    "a prompt that is an object": ({"prompt": {"text": "Once"}}, "prompt"),
    "no token to say": ({"max_tokens": 0}, "max_tokens"),
    "probabilities that are true": ({"logprobs": True}, "logprobs"),
    "stream options without a stream": (
        {"stream_options": {"include_usage": True}},
        "stream_options",
    ),
}


@cases.each(WRONG_COMPLETIONS, "completions")
def a_completion_is_a_bad_request(target: Target, fields: dict[str, Any], param: str) -> None:
    asked = {"prompt": "Once"} | fields
    error = refused(openai.BadRequestError, lambda: target.complete(**asked))
    assert error.param.split(".")[0] == param
    assert error.code == "invalid_request"
