"""Chats and completions of a real model, from the body to the chunks."""

import json
from contextlib import aclosing

import pytest

from eloquio.worker.failures import NotHere, PromptTooLong, RequestFailed
from eloquio.worker.progress import Progress
from eloquio.worker.served import Served
from eloquio.worker_plan import WorkerPlan
from fixtures.worker_answers import completion

pytestmark = pytest.mark.anyio

# Of two tokens in one text, the first ends a turn: SmolLM2's own marks.
THINKS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n{% if enable_thinking %}<think>\n{% endif %}"
    "{# <think> </think> #}"
)


def serve(folder, **choices) -> Served:
    plan = WorkerPlan(
        model="smol",
        model_path=str(folder),
        kind="text",
        dtype="float32",
        context_length=512,
        **choices,
    )
    return Served.load(plan, Progress(0))


@pytest.fixture(scope="module")
async def served(smollm2) -> Served:
    """Asynchronous, so that all tests share the loop that its thread tells the tokens to."""
    return serve(smollm2)


def asked(question="What is the capital of France? Answer briefly.", **fields):
    messages = [{"role": "user", "content": question}]
    return {"messages": messages, "temperature": 0, "max_tokens": 24} | fields


async def test_the_capital_of_france_with_its_end_and_its_usage(served):
    answer = await completion(served, asked())
    assert answer["content"] == "The capital of France is Paris."
    assert answer["finish_reason"] == "stop"
    usage = answer["usage"]
    assert usage["completion_tokens"] == 8
    assert usage["total_tokens"] == usage["prompt_tokens"] + 8
    assert usage["prompt_tokens"] == served.count(asked())


async def test_the_beginning_of_text_is_in_the_prompt_once(served):
    written = served._chat.written(asked())
    assert written.prompt.ids.count(1) == written.text.count("<|im_start|>")


async def test_a_limit_ends_it_as_length_and_a_stop_as_stop(served):
    assert (await completion(served, asked(max_tokens=3)))["finish_reason"] == "length"
    stopped = await completion(served, asked(stop=["of Fra", "never"]))
    assert (stopped["content"], stopped["finish_reason"]) == ("The capital ", "stop")


async def test_two_choices_come_side_by_side_with_one_seed(served):
    fields = asked("Tell me a story.", n=2, seed=5, temperature=1.2, max_tokens=8)
    first, again = await chunks(served.chat(fields)), await chunks(served.chat(fields))
    told = [texts(stream) for stream in (first, again)]
    assert told[0] == told[1]
    assert told[0][0] != told[0][1]
    assert len([chunk for chunk in first if chunk.get("usage")]) == 2


async def chunks(events) -> list[dict]:
    async with aclosing(events) as stream:
        return [json.loads(event.removeprefix(b"data: ")) async for event in stream]


def texts(stream) -> list[str]:
    said = ["", ""]
    for chunk in stream:
        for choice in chunk["choices"]:
            said[choice["index"]] += choice["delta"].get("content") or ""
    return said


async def test_an_answer_that_was_begun_goes_on(served):
    begun = {"role": "assistant", "content": "The capital of France is"}
    fields = asked(continue_final_message=True, add_generation_prompt=False)
    fields["messages"] = [*fields["messages"], begun]
    assert (await completion(served, fields))["content"] == " Paris."


async def test_a_completion_goes_on_with_a_text_or_its_ids(served):
    text = "The capital of France is"
    ids = served.tokenize({"content": text})["tokens"]
    assert served.detokenize({"tokens": ids}) == {"content": text}
    for prompt in (text, ids, [text]):
        told = await chunks(served.complete({"prompt": prompt, "temperature": 0, "max_tokens": 1}))
        said = "".join(choice["text"] for chunk in told for choice in chunk.get("choices", ()))
        assert "Paris" in said


async def test_reasoning_has_its_own_field_where_the_prompt_opens_it(smollm2):
    served = serve(smollm2, chat_template=THINKS)
    assert served.properties()["chat_template_caps"]["supports_reasoning_effort"]
    thought = await completion(served, asked(enable_thinking=True))
    assert thought["reasoning_content"]
    assert thought["content"] == ""
    shaped = await completion(
        served, asked(enable_thinking=True, response_format={"type": "json_object"})
    )
    # It may not end before it has answered, so it thinks on.
    assert shaped["reasoning_content"].startswith(thought["reasoning_content"])
    plain = await completion(served, asked(enable_thinking=False))
    assert "Paris" in plain["content"]
    assert plain["reasoning_content"] == ""


@pytest.mark.parametrize(
    ("fields", "error", "param"),
    [
        ({"response_format": {"type": "yaml"}}, RequestFailed, "response_format"),
        ({"grammar": "root ::= ("}, RequestFailed, "grammar"),
        ({"tools": [{}], "tool_choice": "required"}, NotHere, "tool_choice"),
        ({"use_adapter": True}, RequestFailed, "use_adapter"),
        ({"messages": []}, RequestFailed, "messages"),
        ({"messages": [{"role": "user", "content": "word " * 600}]}, PromptTooLong, "messages"),
    ],
)
async def test_what_it_cannot_do_is_refused_by_name_before_the_first_event(
    served, fields, error, param
):
    with pytest.raises(error) as refused:
        await anext(served.chat(asked(**fields)))
    assert refused.value.param == param


async def test_a_prompt_that_is_too_long_tells_both_numbers(served):
    with pytest.raises(PromptTooLong) as refused:
        await anext(served.chat(asked("word " * 600)))
    error = refused.value.body()["error"]
    assert error["type"] == "exceed_context_size_error"
    assert error["n_ctx"] == 512
    assert error["n_prompt_tokens"] > 600


async def test_an_answer_keeps_to_a_schema_drawn_or_greedy_and_ends_with_it(served):
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 12}, "in": {"enum": ["France"]}},
        "required": ["city", "in"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema}}
    for temperature in (0, 1.5):
        fields = asked(response_format=wanted, temperature=temperature, seed=1, max_tokens=80)
        answer = await completion(served, fields)
        assert json.loads(answer["content"])["in"] == "France"
        assert answer["finish_reason"] == "stop"


async def test_an_answer_keeps_to_a_grammar(served):
    answer = await completion(served, asked(grammar='root ::= "yes" | "no"'))
    assert answer["content"] in ("yes", "no")


async def test_each_prompt_of_a_list_has_its_choices(served):
    prompts = ["The capital of France is", "One, two, three,"]
    fields = {"prompt": prompts, "temperature": 0, "max_tokens": 2}
    told = await chunks(served.complete(fields))
    said = ["", ""]
    for chunk in told:
        for choice in chunk.get("choices", ()):
            said[choice["index"]] += choice["text"]
    assert "Paris" in said[0]
    assert "four" in said[1]
