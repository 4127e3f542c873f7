"""Chat completions: the messages that go in, and the whole reply that comes out."""

from conformance.case import Cases
from conformance.target import CAPITAL, QUESTION, Target, valid

cases = Cases("chat")
case = cases.case

CAT = [
    {"role": "user", "content": "My cat is called Zog."},
    {"role": "assistant", "content": "Zog is a fine name for a cat."},
    {"role": "user", "content": "What is my cat called?"},
]


def prompt_tokens(target: Target, messages: list[object], **fields: object) -> int:
    """How much the model was given to read."""
    count: int = target.chat(messages, max_tokens=1, **fields).usage.prompt_tokens
    return count


@case()
def an_answer_is_whole(target: Target) -> None:
    answer = valid(target.chat())
    [choice] = answer.choices
    assert "Paris" in choice.message.content
    assert (choice.index, choice.finish_reason, choice.logprobs) == (0, "stop", None)
    assert choice.message.role == "assistant"
    assert choice.message.tool_calls is None
    assert answer.object == "chat.completion"
    assert answer.id.startswith("chatcmpl-")
    assert answer.created > 1_700_000_000


@case()
def an_answer_is_of_the_model_that_was_asked(target: Target) -> None:
    assert target.chat(max_tokens=1).model == target.model


@case()
def two_answers_have_two_ids(target: Target) -> None:
    assert target.chat(max_tokens=1).id != target.chat(max_tokens=1).id


@case()
def usage_adds_up(target: Target) -> None:
    usage = target.chat(max_tokens=4).usage
    assert usage.completion_tokens == 4
    assert usage.prompt_tokens > 10
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


@case()
def every_reply_has_an_id_of_its_request(target: Target) -> None:
    one, other = target.chat(max_tokens=1), target.chat(max_tokens=1)
    assert one._request_id
    assert one._request_id != other._request_id


@case()
def a_request_may_bring_its_own_id(target: Target) -> None:
    reply = target.openai.chat.completions.with_raw_response.create(
        model=target.model,
        messages=QUESTION,
        max_tokens=1,
        extra_headers={"X-Request-Id": "of-this-case"},
    )
    assert reply.headers["x-request-id"] == "of-this-case"
    assert reply.parse().choices


@case()
def a_whole_reply_is_json_of_a_told_length(target: Target) -> None:
    reply = target.post(
        "/chat/completions", {"model": target.model, "messages": QUESTION, "max_tokens": 1}
    )
    assert reply.headers["content-type"].startswith("application/json")
    assert int(reply.headers["content-length"]) == len(reply.content)


@case()
def earlier_turns_are_read(target: Target) -> None:
    assert "Zog" in target.chat(CAT, max_tokens=20).choices[0].message.content


@case()
def every_system_message_is_read(target: Target) -> None:
    one = {"role": "system", "content": "You are kind."}
    other = {"role": "system", "content": "You are a librarian who loves rivers."}
    counts = [
        prompt_tokens(target, [*system, *QUESTION]) for system in ([one], [one, other], [one] * 3)
    ]
    assert counts[0] < counts[1]
    assert counts[0] < counts[2]


@case()
def a_developers_message_is_read(target: Target) -> None:
    developer = {"role": "developer", "content": "You are a librarian who loves rivers."}
    assert prompt_tokens(target, [developer, *QUESTION]) > prompt_tokens(target, QUESTION) + 5


@case()
def a_list_of_one_text_is_the_text(target: Target) -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": CAPITAL}]}]
    as_parts, as_text = target.chat(parts), target.chat()
    assert as_parts.usage.prompt_tokens == as_text.usage.prompt_tokens
    assert "Paris" in as_parts.choices[0].message.content


@case()
def all_texts_of_a_message_are_read(target: Target) -> None:
    begun = {"type": "text", "text": "What is the capital of"}
    rest = {"type": "text", "text": " France? Answer briefly."}
    answer = target.chat([{"role": "user", "content": [begun, rest]}])
    assert "Paris" in answer.choices[0].message.content


@case()
def a_message_may_name_who_wrote_it(target: Target) -> None:
    answer = target.chat([{"role": "user", "name": "ada", "content": CAPITAL}])
    assert "Paris" in answer.choices[0].message.content


@case()
def a_reply_that_said_nothing_can_be_sent_back(target: Target) -> None:
    silent = {"role": "assistant", "content": None}
    assert "Paris" in target.chat([*QUESTION, silent, *QUESTION]).choices[0].message.content


@case()
def a_refusal_can_be_sent_back(target: Target) -> None:
    part = {"type": "refusal", "refusal": "I would rather not say."}
    messages = [*QUESTION, {"role": "assistant", "content": [part]}, *QUESTION]
    assert prompt_tokens(target, messages) > prompt_tokens(target, QUESTION * 2) + 3


@case()
def an_answer_can_be_sent_back_as_it_came(target: Target) -> None:
    first = target.chat().choices[0].message
    second = valid(target.chat([*QUESTION, first, {"role": "user", "content": "And of Italy?"}]))
    assert second.choices[0].finish_reason == "stop"


@case()
def text_of_every_script_goes_in_whole(target: Target) -> None:
    plain = prompt_tokens(target, [{"role": "user", "content": "x"}])
    for text in ("Où est la rivière", "河はどこですか", "🦙🦙🦙", "שלום עולם"):
        assert prompt_tokens(target, [{"role": "user", "content": f"x {text}"}]) > plain


@case()
def hints_that_change_no_answer_are_taken(target: Target) -> None:
    answer = target.chat(
        user="ada",
        metadata={"topic": "rivers"},
        store=False,
        service_tier="auto",
        safety_identifier="ada",
        prompt_cache_key="rivers",
        modalities=["text"],
    )
    assert "Paris" in answer.choices[0].message.content


@case()
def a_field_that_is_null_is_one_left_out(target: Target) -> None:
    answer = target.chat(
        stop=None, seed=None, tools=None, tool_choice=None, response_format=None, logit_bias=None
    )
    assert "Paris" in answer.choices[0].message.content


@case("thinking")
def thinking_is_in_a_field_of_its_own(target: Target) -> None:
    answer = valid(target.chat(model=target.models.thinking, max_tokens=8))
    message = answer.choices[0].message
    assert message.reasoning_content
    assert not message.content
    assert answer.choices[0].finish_reason == "length"


@case("thinking")
def a_model_that_is_told_not_to_think_answers_at_once(target: Target) -> None:
    answer = target.chat(
        model=target.models.thinking, max_tokens=8, extra_body={"enable_thinking": False}
    )
    message = answer.choices[0].message
    assert message.content
    assert getattr(message, "reasoning_content", None) is None


@case()
def an_effort_of_reasoning_may_be_asked_for(target: Target) -> None:
    assert "Paris" in target.chat(reasoning_effort="low").choices[0].message.content
