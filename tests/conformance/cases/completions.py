"""OpenAI's older completions of a text."""

from conformance.case import Cases
from conformance.target import GREEDY, Target, valid

cases = Cases("completions", "completions")
case = cases.case

BEGUN = "The capital of France is"
TALE = "Once upon a time there was a river that"


@case()
def a_text_is_gone_on_with(target: Target) -> None:
    answer = valid(target.complete(BEGUN))
    [choice] = answer.choices
    assert "Paris" in choice.text
    assert not choice.text.startswith(BEGUN)
    assert (choice.index, choice.finish_reason, choice.logprobs) == (0, "length", None)
    assert answer.object == "text_completion"
    assert answer.id.startswith("cmpl-")
    assert answer.model == target.model


@case()
def usage_of_a_completion_adds_up(target: Target) -> None:
    usage = target.complete(BEGUN).usage
    assert usage.completion_tokens == 8
    assert usage.total_tokens == usage.prompt_tokens + 8


@case("tokenize")
def a_prompt_may_be_its_tokens(target: Target) -> None:
    answer = target.complete(target.tokens(BEGUN))
    assert "Paris" in answer.choices[0].text
    assert answer.usage.prompt_tokens == target.complete(BEGUN).usage.prompt_tokens


@case()
def each_prompt_of_a_list_has_its_completion(target: Target) -> None:
    prompts = [BEGUN, "The capital of Italy is"]
    answer = valid(target.complete(prompts))
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert "Paris" in answer.choices[0].text
    assert "Rome" in answer.choices[1].text
    alone = [target.complete(prompt).usage.prompt_tokens for prompt in prompts]
    assert answer.usage.prompt_tokens == sum(alone)
    assert answer.usage.completion_tokens == 16


@case("tokenize")
def each_list_of_tokens_has_its_completion(target: Target) -> None:
    prompts = [target.tokens(BEGUN), target.tokens("The capital of Italy is")]
    answer = target.complete(prompts)
    assert "Paris" in answer.choices[0].text
    assert "Rome" in answer.choices[1].text


@case()
def two_completions_of_one_prompt_have_one_usage(target: Target) -> None:
    answer = target.complete(TALE, n=2, max_tokens=4)
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.usage.completion_tokens == 8


@case()
def a_prompt_is_said_again_where_it_is_asked_for(target: Target) -> None:
    prompt = "\u00c0 Paris, \u6cb3, \N{LLAMA}:"
    answer = target.complete(prompt, echo=True, max_tokens=2)
    assert answer.choices[0].text.startswith(prompt)
    assert len(answer.choices[0].text) > len(prompt)


@case("logprobs")
def probabilities_have_the_older_shape(target: Target) -> None:
    choice = valid(target.complete(BEGUN, logprobs=2, max_tokens=3)).choices[0]
    told = choice.logprobs
    assert "".join(told.tokens) == choice.text
    assert len(told.token_logprobs) == len(told.top_logprobs) == len(told.text_offset) == 3
    assert all(logprob <= 0 for logprob in told.token_logprobs)
    assert told.text_offset == [0, len(told.tokens[0]), len(told.tokens[0] + told.tokens[1])]
    for token, tops in zip(told.tokens, told.top_logprobs, strict=True):
        assert len(tops) == 2
        assert token in tops


@case()
def a_completion_stops_at_a_text_and_does_not_tell_it(target: Target) -> None:
    choice = target.complete(BEGUN, stop=["nowhere", " Paris"]).choices[0]
    assert (choice.finish_reason, choice.text) == ("stop", "")


@case()
def a_seed_makes_a_completion_again(target: Target) -> None:
    fields = {"temperature": 1, "seed": 7, "max_tokens": 10}
    texts = [target.complete(TALE, **fields).choices[0].text for _ in range(3)]
    assert texts[1] == texts[2]


@case("logit_bias", "tokenize")
def a_token_can_be_had_in_a_completion(target: Target) -> None:
    [token] = target.tokens(" river")
    answer = target.complete(TALE, logit_bias={str(token): 100}, max_tokens=2)
    assert answer.choices[0].text == " river" * 2


@case()
def a_completion_is_streamed(target: Target) -> None:
    whole = target.complete(BEGUN)
    chunks = list(target.complete(BEGUN, stream=True))
    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(choice.text for choice in choices) == whole.choices[0].text
    assert choices[-1].finish_reason == "length"
    assert {chunk.object for chunk in chunks} == {"text_completion"}
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
    assert chunks[0].id.startswith("cmpl-")


@case()
def usage_of_a_streamed_completion_is_told_only_where_it_is_asked_for(target: Target) -> None:
    assert not any(chunk.usage for chunk in target.complete(BEGUN, stream=True))
    *chunks, last = target.complete(BEGUN, stream=True, stream_options={"include_usage": True})
    assert not any(chunk.usage for chunk in chunks)
    assert last.choices == []
    assert last.usage.completion_tokens == 8


@case()
def prompts_of_a_list_are_streamed_beside_each_other(target: Target) -> None:
    prompts = [BEGUN, "The capital of Italy is"]
    texts = {0: "", 1: ""}
    for chunk in target.complete(prompts, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert "Paris" in texts[0]
    assert "Rome" in texts[1]


@case()
def a_streamed_completion_ends_once(target: Target) -> None:
    text = target.raw_stream("/completions", prompt=BEGUN, max_tokens=2, **GREEDY).text
    assert text.endswith("data: [DONE]\n\n")
    assert text.count("[DONE]") == 1
