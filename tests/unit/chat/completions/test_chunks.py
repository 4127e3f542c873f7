"""An engine's chunks of completions, as OpenAI has them."""

import pytest

from eloquio.answers.exchange import Exchange
from eloquio.chat.completions.chunks import CompletionChunks
from eloquio.chat.completions.schema import CompletionRequest


def chunks_of(**fields):
    request = CompletionRequest.model_validate({"prompt": "Once"} | fields)
    return CompletionChunks(request, Exchange(id="1", route="/completions"))


def chunk(text="", index=0, reason=None, **more):
    choice = {"text": text, "index": index, "logprobs": more.pop("logprobs", None)}
    return {"id": "chatcmpl-7", "choices": [choice | {"finish_reason": reason}]} | more


def usage(prompt, completion):
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


def logprobs(*tokens):
    return {
        "content": [
            {"token": t, "logprob": -1.0, "top_logprobs": [{"token": "other", "logprob": -0.5}]}
            for t in tokens
        ]
    }


def test_ids_are_those_of_completions():
    assert chunks_of().feed(chunk("a"))["id"] == "cmpl-7"


def test_usage_leaves_the_last_chunk_and_counts_every_choice():
    chunks = chunks_of(prompt=["a", "b"], n=2)
    for index in range(4):
        told = chunks.feed(chunk(index=index, reason="length", **usage(5, 3)))
        assert "usage" not in told
    assert chunks.usage()["prompt_tokens"] == 10
    assert chunks.usage()["completion_tokens"] == 12
    assert chunks.usage()["total_tokens"] == 22
    assert chunks.usage_chunk()["choices"] == []


def test_a_chunk_that_says_nothing_is_left_out():
    assert chunks_of().feed(chunk("")) is None


def test_an_echo_says_each_prompt_once_before_its_completions():
    chunks = chunks_of(prompt=["One", "Two"], n=2, echo=True)
    first = [chunks.feed(chunk("!", index))["choices"][0]["text"] for index in range(4)]
    assert first == ["One!", "One!", "Two!", "Two!"]
    assert chunks.feed(chunk("?", 3))["choices"][0]["text"] == "?"


def test_probabilities_have_the_shape_of_completions():
    chunks = chunks_of(logprobs=1)
    chunks.feed(chunk("ab", logprobs=logprobs("ab")))
    told = chunks.feed(chunk("c", logprobs=logprobs("c")))["choices"][0]["logprobs"]
    assert told == {
        "tokens": ["c"],
        "token_logprobs": [-1.0],
        "top_logprobs": [{"c": -1.0, "other": -0.5}],
        "text_offset": [2],
    }


def test_without_alternatives_only_what_was_chosen_is_told():
    told = chunks_of(logprobs=0).feed(chunk("c", logprobs=logprobs("c")))
    assert told["choices"][0]["logprobs"]["top_logprobs"] is None


def test_the_whole_reply_is_what_the_chunks_make():
    chunks = chunks_of(logprobs=1)
    fed = [
        chunks.feed(chunk("a", logprobs=logprobs("a"))),
        chunks.feed(chunk("b", logprobs=logprobs("b"))),
        chunks.feed(chunk(reason="stop", **usage(2, 2))),
    ]
    reply = chunks.whole(fed)
    [choice] = reply["choices"]
    assert choice["text"] == "ab"
    assert choice["finish_reason"] == "stop"
    assert choice["logprobs"]["tokens"] == ["a", "b"]
    assert choice["logprobs"]["text_offset"] == [0, 1]
    assert reply["usage"]["total_tokens"] == 4


@pytest.mark.parametrize(
    ("prompt", "count"), [("a", 1), ([1, 2], 1), (["a", "b"], 2), ([[1], [2, 3]], 2)]
)
def test_a_prompt_may_be_texts_or_tokens(prompt, count):
    request = CompletionRequest.model_validate({"prompt": prompt})
    assert len(request.prompts()) == count


@pytest.mark.parametrize("prompt", [None, [], [[]], 7, [1, "a"], [True], [-1], [{}]])
def test_anything_else_is_no_prompt(prompt):
    with pytest.raises(ValueError, match="prompt"):
        CompletionRequest.model_validate({"prompt": prompt})
