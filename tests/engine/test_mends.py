"""What the real llama-server ignores, or does wrong, without our mends, and does right with them.

A test that fails where it shows the fault says that the build needs that mend no more.
"""

import json

import pytest

from eloquio.chat.mends import mended
from eloquio.chat.reply_mends import with_one_call
from fixtures.calling import MESSAGES, TEMPLATE, TOOLS
from fixtures.pools import load, pool_of
from fixtures.running import BUILTIN

pytestmark = pytest.mark.anyio

ALTERNATING = """\
{%- for message in messages %}
{%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Roles must alternate: user, assistant, user') }}
{%- endif %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
SHOWS_EFFORT = (
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>"
    "{%- endfor %}{{ 'effort: ' + reasoning_effort if reasoning_effort is defined }}"
)


@pytest.fixture
async def ask(settings):
    """Asks the engine itself, without anything of ours between."""
    async with pool_of(settings) as pool:

        async def ask(fields, path="/v1/chat/completions", template=None):
            await load(pool, BUILTIN, max_seq_length=2048, chat_template_override=template)
            async with pool.lease(BUILTIN) as (_, client):
                body = {"temperature": 0, "max_tokens": 90} | fields
                async with client.post(path, json=body) as reply:
                    return reply.status, await reply.text()

        yield ask


def says(*messages):
    return {"messages": [{"role": role, "content": content} for role, content in messages]}


def message_of(answer):
    status, text = answer
    assert status == 200, text
    return json.loads(text)["choices"][0]["message"]


def called(answer):
    return [call["function"]["name"] for call in message_of(answer)["tool_calls"]]


async def test_a_repetition_penalty_is_known_by_the_engines_name_only(ask):
    fields = says(("user", "Repeat the word tree ten times.")) | {"repetition_penalty": 2.0}
    plain = await ask(fields | {"repetition_penalty": None})
    assert message_of(await ask(fields)) == message_of(plain)
    assert message_of(await ask(mended(fields))) != message_of(plain)


async def test_a_json_object_is_one_only_by_a_schema(ask):
    fields = says(("user", "Tell me of Paris.")) | {"response_format": {"type": "json_object"}}
    assert not message_of(await ask(fields))["content"].lstrip().startswith("{")
    assert message_of(await ask(mended(fields)))["content"].lstrip().startswith("{")


async def test_a_call_is_sure_to_be_made_only_by_a_schema(ask):
    fields = says(("user", "Hello, how are you?")) | {"tools": TOOLS, "tool_choice": "required"}
    assert "tool_calls" not in message_of(await ask(fields, template=TEMPLATE))
    calls = json.loads(message_of(await ask(mended(fields), template=TEMPLATE))["content"])
    assert {call["name"] for call in calls} <= {"alpha", "beta"}
    assert all(call["arguments"].keys() == {"x"} for call in calls)


async def test_a_tool_chosen_by_its_name_is_the_one_that_is_called(ask):
    choice = {"type": "function", "function": {"name": "beta"}}
    fields = {"messages": MESSAGES, "tools": TOOLS, "tool_choice": choice}
    assert called(await ask(fields, template=TEMPLATE)) == ["alpha", "beta"]
    [call] = json.loads(message_of(await ask(mended(fields), template=TEMPLATE))["content"])
    assert call["name"] == "beta"


async def test_a_function_s_references_hold_in_the_schema_of_its_call(ask):
    parameters = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/letter"}},
        "required": ["x"],
        "additionalProperties": False,
        "$defs": {"letter": {"enum": ["p", "q"]}},
    }
    tools = [{"type": "function", "function": {"name": "pick", "parameters": parameters}}]
    fields = says(("user", "Hello")) | {"tools": tools, "tool_choice": "required"}
    fields["parallel_tool_calls"] = False
    [call] = json.loads(message_of(await ask(mended(fields), template=TEMPLATE))["content"])
    assert call["arguments"] in ({"x": "p"}, {"x": "q"})


async def test_a_token_s_probability_is_told_only_with_an_alternative(ask):
    def probabilities(answer):
        return (json.loads(answer[1])["choices"][0].get("logprobs") or {}).get("content")

    fields = says(("user", "Hi")) | {"logprobs": True, "top_logprobs": 0, "max_tokens": 2}
    assert not probabilities(await ask(fields))
    assert len(probabilities(await ask(mended(fields)))) == 2


async def test_of_two_calls_only_the_first_is_told_where_one_was_asked_for(ask):
    fields = {"messages": MESSAGES, "tools": TOOLS, "parallel_tool_calls": False}
    assert called(await ask(fields, template=TEMPLATE)) == ["alpha", "beta"]
    _, text = await ask(fields | {"stream": True}, template=TEMPLATE)
    events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    chunks = [json.loads(event) for event in events if event != "[DONE]"]
    told = [chunk for chunk in map(with_one_call, chunks) if chunk]
    deltas = [chunk["choices"][0]["delta"] for chunk in told if chunk["choices"]]
    pieces = [piece["function"] for delta in deltas for piece in delta.get("tool_calls", ())]
    assert [piece["name"] for piece in pieces if "name" in piece] == ["alpha"]
    assert json.loads("".join(piece["arguments"] for piece in pieces)) == {"x": "1"}
    assert [c["finish_reason"] for chunk in told for c in chunk["choices"]][-1] == "tool_calls"


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"content": [{"type": "refusal", "refusal": "No."}]},
    ],
)
async def test_a_reply_without_a_text_leaves_the_chat_sendable(ask, reply):
    first, second = says(("user", "Hi"), ("user", "And?"))["messages"]
    fields = {"messages": [first, {"role": "assistant"} | reply, second], "max_tokens": 2}
    status, _ = await ask(fields)
    assert status == 400
    assert message_of(await ask(mended(fields)))["content"]


async def test_these_need_no_mend(ask):
    """Where one fails, a mend is due."""
    developer = says(("developer", "Be brief."), ("user", "Hi"))
    system = says(("system", "Be brief."), ("user", "Hi"))
    assert await ask(developer, "/apply-template") == await ask(system, "/apply-template")

    short = says(("user", "Hi")) | {"max_tokens": None, "max_completion_tokens": 2}
    _, text = await ask(short)
    assert json.loads(text)["usage"]["completion_tokens"] == 2

    effort = says(("user", "Hi")) | {"reasoning_effort": "low"}
    _, text = await ask(effort, "/apply-template", SHOWS_EFFORT)
    assert "effort: low" in json.loads(text)["prompt"]
    empty = says(("user", "Hi"), ("assistant", ""), ("user", "And?"))
    assert message_of(await ask(empty))["content"]


async def test_several_system_messages_all_reach_the_prompt(ask):
    several = says(
        ("system", "First."), ("system", "Second."), ("user", "Hi"), ("system", "Third.")
    )
    _, text = await ask(several, "/apply-template")
    assert all(word in json.loads(text)["prompt"] for word in ("First.", "Second.", "Third."))


async def test_a_system_message_is_put_into_the_first_turn_where_the_template_has_no_place(ask):
    status, text = await ask(
        says(("system", "Be brief."), ("user", "Hi")), "/apply-template", ALTERNATING
    )
    assert status == 200
    assert "<|im_start|>user\nBe brief.\nHi" in json.loads(text)["prompt"]


async def test_a_strict_template_refuses_two_turns_in_a_row_in_its_own_words(ask):
    status, text = await ask(says(("user", "Hi"), ("user", "Hello?")), template=ALTERNATING)
    assert status == 400
    assert "Roles must alternate" in text
