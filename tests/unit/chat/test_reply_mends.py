"""What is mended in an engine's chunks, and what stays as it came."""

import copy
import json

import pytest

from eloquio.chat import mends
from eloquio.chat.reply_mends import ReplyMends, ReplyWishes, with_one_call
from eloquio.chat.schema import ChatRequest
from eloquio.errors import ToolNotCalled
from fixtures.calling import TOOLS

USER = {"role": "user", "content": "Hi"}
ONE_CALL = ReplyWishes(takes_one_call=True)
REQUIRED = ReplyWishes(requires_call=True)


def chunk(delta, finish_reason=None):
    return {"id": "a", "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def calls(*indexes):
    return {"tool_calls": [{"index": index, "function": {"arguments": "{"}} for index in indexes]}


@pytest.mark.parametrize(
    "kept",
    [
        chunk({"role": "assistant", "content": None}),
        chunk({"content": "Well."}),
        chunk(calls(0)),
        chunk({}, "tool_calls"),
        {"choices": [], "usage": {"total_tokens": 3}},
    ],
)
def test_what_holds_no_second_call_is_the_same_chunk(kept):
    assert with_one_call(kept) is kept


def test_a_chunk_of_the_second_call_alone_is_dropped():
    assert with_one_call(chunk(calls(1))) is None


def test_from_a_chunk_of_two_calls_the_second_is_taken_and_nothing_else():
    given = chunk({"content": "x"} | calls(0, 1), "tool_calls")
    before = copy.deepcopy(given)
    assert with_one_call(given) == chunk({"content": "x"} | calls(0), "tool_calls")
    assert given == before


def test_an_end_is_told_though_it_came_with_the_second_call():
    assert with_one_call(chunk(calls(1), "tool_calls")) == chunk({}, "tool_calls")


# Wishes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "wishes"),
    [
        ({}, ReplyWishes()),
        ({"tools": TOOLS, "parallel_tool_calls": True}, ReplyWishes()),
        ({"tools": TOOLS, "parallel_tool_calls": False}, ONE_CALL),
        ({"tools": TOOLS, "tool_choice": "required"}, REQUIRED),
        (
            {
                "tools": TOOLS,
                "tool_choice": {"type": "function", "function": {"name": "beta"}},
            },
            ReplyWishes(takes_one_call=True, requires_call=True),
        ),
        ({"logprobs": True}, ReplyWishes(takes_no_alternatives=True)),
        ({"logprobs": True, "top_logprobs": 0}, ReplyWishes(takes_no_alternatives=True)),
        ({"logprobs": True, "top_logprobs": 1}, ReplyWishes()),
    ],
)
def test_a_request_that_was_mended_still_says_what_it_wants_of_its_reply(fields, wishes):
    asked = {"messages": [USER]} | fields
    assert ReplyWishes.of(ChatRequest.model_validate(asked)) == wishes
    assert ReplyWishes.of_kept(mends.mended(asked)) == wishes


# Blocks ---------------------------------------------------------------------------------------


def block_of(*chunks):
    return b"".join(b"data: %s\n\n" % json.dumps(c, separators=(",", ":")).encode() for c in chunks)


def chunks_of(block):
    events = block.decode().split("\n\n")
    assert events.pop() == ""
    return [json.loads(event.removeprefix("data: ")) for event in events]


def text(piece, finish_reason=None):
    return chunk({"content": piece} if piece else {}, finish_reason)


@pytest.mark.parametrize("wishes", [ReplyWishes(), ONE_CALL])
def test_a_block_that_is_as_it_was_wished_for_is_the_same_bytes(wishes):
    block = b'data: {"choices":[{"delta":{"content":"\\u00e9"}}]}\n\n: still there\n\n'
    assert ReplyMends(wishes).take(block) is block


def test_of_a_block_the_events_of_the_first_call_and_of_the_end_are_left():
    chunks = [chunk(calls(0)), chunk(calls(1)), chunk({}, "tool_calls")]
    told = chunks_of(ReplyMends(ONE_CALL).take(block_of(*chunks)))
    assert told == [chunks[0], chunks[2]]


def test_alternatives_that_nobody_asked_for_are_left_out():
    token = {"token": "a", "logprob": -1.0, "bytes": [97]}
    given = text("a")
    given["choices"][0]["logprobs"] = {"content": [token | {"top_logprobs": [token]}]}
    mending = ReplyMends(ReplyWishes(takes_no_alternatives=True))
    [told] = chunks_of(mending.take(block_of(given)))
    assert told["choices"][0]["logprobs"]["content"] == [token | {"top_logprobs": []}]


def test_a_required_call_is_told_as_one_though_it_came_as_text():
    role = chunk({"role": "assistant", "content": None})
    thought = chunk({"reasoning_content": "Hm."})
    pieces = ['[{"na', 'me": "beta", "arguments": {"x": ', '"1"}}]']
    block = block_of(role, thought, *map(text, pieces), text("", "stop"))
    first, second, begun, end, last = chunks_of(ReplyMends(REQUIRED).take(block))
    assert (first, second) == (role, thought)
    [called] = begun["choices"][0]["delta"]["tool_calls"]
    assert called["function"] == {"name": "beta", "arguments": '{"x": '}
    [rest] = end["choices"][0]["delta"]["tool_calls"]
    assert rest == {"index": 0, "function": {"arguments": '"1"}'}}
    assert last == chunk({}, "tool_calls")


def test_the_choices_of_a_reply_call_each_for_itself():
    mending = ReplyMends(REQUIRED)
    block = block_of(text('[{"name": "alpha", "arguments": {}}]'), text("", "stop"))
    other = block.replace(b'"index":0', b'"index":1', 1).replace(b"alpha", b"beta")
    [one, _] = chunks_of(mending.take(block))
    [two, *_] = chunks_of(mending.take(other))
    names = [c["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] for c in (one, two)]
    assert names == ["alpha", "beta"]


def test_a_reply_cut_off_in_a_call_says_so():
    block = block_of(text('[{"name": "beta", "argum'), text("", "length"))
    assert chunks_of(ReplyMends(REQUIRED).take(block)) == [chunk({}, "length")]


def test_a_call_in_a_template_s_own_way_is_one_too():
    block = block_of(chunk(calls(0)), chunk({}, "stop"))
    told = chunks_of(ReplyMends(REQUIRED).take(block))
    assert [each["choices"][0]["finish_reason"] for each in told] == [None, "tool_calls"]


@pytest.mark.parametrize("pieces", [["Well, "], ["", "[", "]"], [" ", "{"], []])
def test_a_reply_that_ends_without_a_required_call_is_an_error_that_names_the_field(pieces):
    block = block_of(*map(text, pieces), text("", "stop"))
    with pytest.raises(ToolNotCalled) as failure:
        ReplyMends(REQUIRED).take(block)
    assert failure.value.param == "tool_choice"


def test_usage_passes_behind_a_required_call():
    block = b'data: {"choices":[],"usage":{"total_tokens":3}}\n\n'
    assert ReplyMends(REQUIRED).take(block) is block
