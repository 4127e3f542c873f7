"""The fields that bound a chat's answer or choose its tokens."""

from conformance.case import Cases
from conformance.target import CAPITAL, Target, text_of, valid

cases = Cases("sampling")
case = cases.case

TALE = [{"role": "user", "content": "Tell a long story about a river."}]
SAME_WORD = [{"role": "user", "content": "Write the word river fifty times."}]


def said(target: Target, messages: list[object] | None = None, **fields: object) -> str:
    text: str = target.chat(messages or TALE, **fields).choices[0].message.content
    return text


@case()
def max_tokens_cuts_an_answer(target: Target) -> None:
    answer = target.chat(TALE, max_tokens=3)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 3


@case()
def max_completion_tokens_cuts_an_answer(target: Target) -> None:
    answer = target.chat(TALE, max_completion_tokens=3)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 3


@case()
def an_answer_may_be_one_token_long(target: Target) -> None:
    answer = target.chat(TALE, max_tokens=1)
    assert answer.usage.completion_tokens == 1
    assert answer.choices[0].message.content


@case()
def both_limits_may_say_the_same(target: Target) -> None:
    answer = target.chat(TALE, max_tokens=2, max_completion_tokens=2)
    assert answer.usage.completion_tokens == 2


@case()
def a_stop_text_ends_an_answer_and_is_not_told(target: Target) -> None:
    choice = target.chat(stop=" Paris").choices[0]
    assert choice.finish_reason == "stop"
    assert choice.message.content.strip()
    assert "Paris" not in choice.message.content


@case()
def a_stop_text_may_end_inside_a_token(target: Target) -> None:
    assert target.chat(stop=" is Pa").choices[0].message.content == "The capital of France"


@case()
def any_text_of_a_list_stops(target: Target) -> None:
    choice = target.chat(stop=["nowhere", " Paris", "never"]).choices[0]
    assert (choice.finish_reason, "Paris" in choice.message.content) == ("stop", False)


@case()
def a_stop_text_that_never_comes_changes_nothing(target: Target) -> None:
    assert "Paris" in said(target, [{"role": "user", "content": CAPITAL}], stop="nowhere")


@case("schema")
def a_stop_text_beyond_ascii_stops(target: Target) -> None:
    town = {
        "type": "object",
        "properties": {"town": {"const": "Z\u00fcrich"}},
        "required": ["town"],
    }
    form = {"type": "json_schema", "json_schema": {"name": "town", "schema": town}}
    text = said(target, response_format=form, stop="\u00fc", max_tokens=60)
    assert text.endswith("Z")


@case()
def a_seed_makes_an_answer_again(target: Target) -> None:
    fields = {"temperature": 1.0, "seed": 7, "max_tokens": 12}
    # The first finds nothing of its prompt in the engine's cache; the others do.
    said(target, **fields)
    assert said(target, **fields) == said(target, **fields)


@case()
def another_seed_makes_another_answer(target: Target) -> None:
    texts = {said(target, temperature=1.0, seed=seed, max_tokens=12) for seed in range(5)}
    assert len(texts) > 1


@case()
def no_temperature_makes_the_likeliest_answer(target: Target) -> None:
    said(target, max_tokens=12)
    assert said(target, max_tokens=12) == said(target, max_tokens=12)


@case()
def no_top_p_leaves_only_the_likeliest(target: Target) -> None:
    question = [{"role": "user", "content": CAPITAL}]
    assert "Paris" in said(target, question, temperature=2, top_p=0.000001, max_tokens=20)


@case()
def top_k_of_one_leaves_only_the_likeliest(target: Target) -> None:
    question = [{"role": "user", "content": CAPITAL}]
    fields = {"temperature": 2, "extra_body": {"top_k": 1}, "max_tokens": 20}
    assert "Paris" in said(target, question, **fields)


@case()
def min_p_of_one_leaves_only_the_likeliest(target: Target) -> None:
    question = [{"role": "user", "content": CAPITAL}]
    fields = {"temperature": 2, "extra_body": {"min_p": 1.0, "top_p": 1.0}, "max_tokens": 20}
    assert "Paris" in said(target, question, **fields)


@case()
def a_frequency_penalty_changes_what_is_said(target: Target) -> None:
    plain = said(target, SAME_WORD, max_tokens=40)
    assert said(target, SAME_WORD, max_tokens=40, frequency_penalty=2) != plain


@case()
def a_presence_penalty_changes_what_is_said(target: Target) -> None:
    plain = said(target, SAME_WORD, max_tokens=40)
    assert said(target, SAME_WORD, max_tokens=40, presence_penalty=2) != plain


@case()
def a_repetition_penalty_changes_what_is_said(target: Target) -> None:
    plain = said(target, SAME_WORD, max_tokens=40)
    penalty = {"repetition_penalty": 1.8}
    assert said(target, SAME_WORD, max_tokens=40, extra_body=penalty) != plain


@case("logit_bias", "tokenize")
def a_token_can_be_forbidden(target: Target) -> None:
    bias = {str(token): -100 for token in [*target.tokens(" Paris"), *target.tokens("Paris")]}
    answer = said(target, [{"role": "user", "content": CAPITAL}], logit_bias=bias, max_tokens=20)
    assert " Paris" not in answer


@case("logit_bias", "tokenize")
def a_token_can_be_had_above_all_others(target: Target) -> None:
    [token] = target.tokens(" river")
    assert said(target, logit_bias={str(token): 100}, max_tokens=3) == " river" * 3


@case()
def two_choices_are_two_answers_with_one_usage(target: Target) -> None:
    answer = valid(target.chat(TALE, n=2, max_tokens=4))
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert [choice.finish_reason for choice in answer.choices] == ["length", "length"]
    assert all(choice.message.content for choice in answer.choices)
    usage = answer.usage
    assert usage.completion_tokens == 8
    assert usage.total_tokens == usage.prompt_tokens + 8


@case()
def one_choice_may_be_asked_for_by_number(target: Target) -> None:
    assert len(target.chat(n=1, max_tokens=1).choices) == 1


@case("logprobs")
def each_token_has_its_probability(target: Target) -> None:
    choice = valid(target.chat(logprobs=True)).choices[0]
    tokens = choice.logprobs.content
    assert "".join(token.token for token in tokens).startswith(choice.message.content)
    assert all(token.logprob <= 0 for token in tokens)
    assert all(bytes(token.bytes).decode() == token.token for token in tokens)


@case("logprobs")
def the_likeliest_tokens_come_beside_each(target: Target) -> None:
    choice = valid(target.chat(logprobs=True, top_logprobs=3)).choices[0]
    for token in choice.logprobs.content:
        tops = [top.logprob for top in token.top_logprobs]
        assert len(tops) == 3
        assert tops == sorted(tops, reverse=True)
        # At no temperature the likeliest is taken.
        assert token.top_logprobs[0].token == token.token


@case("logprobs")
def twenty_tokens_may_be_asked_for_beside_each(target: Target) -> None:
    choice = target.chat(max_tokens=1, logprobs=True, top_logprobs=20).choices[0]
    assert len(choice.logprobs.content[0].top_logprobs) == 20


@case("logprobs")
def probabilities_are_streamed_with_their_text(target: Target) -> None:
    chunks = target.chunks(logprobs=True, top_logprobs=1, max_tokens=6)
    tokens = [
        token.token
        for chunk in chunks
        for choice in chunk.choices
        for token in (choice.logprobs.content if choice.logprobs else None) or ()
    ]
    assert "".join(tokens) == text_of(chunks)
    assert len(tokens) == 6
