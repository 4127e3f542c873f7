"""Anthropic's messages through a real server to the real engine, with the official client."""

import base64
import json
import threading

import anthropic
import httpx2 as httpx
import pytest
from anthropic import Anthropic
from anthropic.types import Message

from eloquio.doctor.faults import stand_in
from fixtures import calling
from fixtures.picture_files import saved, scene
from fixtures.running import BUILTIN, CAPITAL, place, serving, until
from fixtures.tiny_vision import TOKENS_OF_A_PICTURE, write_tiny_projector

QUESTION = [{"role": "user", "content": CAPITAL}]
WEATHER = {
    "name": "weather",
    "description": "Tells the weather in a town.",
    "input_schema": {
        "type": "object",
        "properties": {"town": {"type": "string"}},
        "required": ["town"],
    },
}
CLOCK = {"name": "clock", "description": "Tells the time.", "input_schema": {"type": "object"}}
# ChatML, with a place for tools and their calls.
WITH_TOOLS = """\
{%- if tools %}{{- '<|im_start|>system\\nCall a tool by its name and arguments, as JSON within \
<tool_call></tool_call>.\\n' }}{%- for tool in tools %}{{- tool | tojson + '\\n' }}{%- endfor %}\
{{- '<|im_end|>\\n' }}{%- endif %}\
{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}\
{%- if message.content %}{{- message.content }}{%- endif %}\
{%- for call in message.tool_calls or [] %}\
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}\
{{- call.function.arguments | tojson }}{{- '}\\n</tool_call>' }}{%- endfor %}\
{{- '<|im_end|>\\n' }}{%- endfor %}\
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""
# ChatML whose answers begin with thinking, unless they are told not to.
THINKING = """\
{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}\
{%- if message.reasoning_content %}\
{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}\
{{- message.content + '<|im_end|>\\n' }}{%- endfor %}\
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n' }}\
{%- if enable_thinking is defined and enable_thinking is false %}{{- '\\n</think>\\n\\n' }}\
{%- endif %}{%- endif %}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory, real_model, tiny_model):
    home = tmp_path_factory.mktemp("home")
    place(real_model, home / "models" / f"{BUILTIN}.gguf")
    place(tiny_model, home / "models" / "tiny.gguf")
    place(tiny_model, home / "models" / "seeing" / "tiny.gguf")
    write_tiny_projector(home / "models" / "seeing" / "mmproj-tiny.gguf")
    with serving(home) as running:
        until(lambda: httpx.get(f"{running.url}/ready").status_code == 200, 60)
        yield running


@pytest.fixture
def client(server):
    with client_of(server) as client:
        yield client


@pytest.fixture
def model_with_tools(server):
    loaded = load(server, BUILTIN, chat_template_override=WITH_TOOLS)
    assert loaded["supports_tools"]
    return BUILTIN


@pytest.fixture
def thinking_model(server):
    """It answers nonsense without an end, and thinks until it is stopped."""
    load(server, "tiny", chat_template_override=THINKING)
    return "tiny"


def client_of(server):
    return Anthropic(base_url=server.url, api_key="any", max_retries=0)


def load(server, model, **fields):
    reply = httpx.post(f"{server.url}/load", json={"model_path": model} | fields, timeout=60)
    assert reply.status_code == 200, reply.text
    return reply.json()


def ask(server, **fields):
    body = {"model": BUILTIN, "max_tokens": 50, "messages": QUESTION} | fields
    return httpx.post(f"{server.url}/v1/messages", json=body, timeout=60)


def asked_of_two_towns():
    """A conversation that shows a small model how to call."""
    messages = []
    for town, weather in (("Rome", "sunny"), ("Berlin", "rainy")):
        call = {"type": "tool_use", "id": f"toolu_{town}", "name": "weather"}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{town}", "content": weather}
        messages += [
            {"role": "user", "content": f"What is the weather in {town}?"},
            {"role": "assistant", "content": [call | {"input": {"town": town}}]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": f"It is {weather}."},
        ]
    return [*messages, {"role": "user", "content": "What is the weather in Paris?"}]


def picture(kind):
    data = base64.b64encode(saved(scene(), kind)).decode()
    source = {"type": "base64", "media_type": f"image/{kind.lower()}", "data": data}
    return {"type": "image", "source": source}


def busy(server):
    engines = httpx.get(f"{server.url}/v1/status").json()["engines"]
    return sum(engine["busy"] for engine in engines)


GREEDY = {"temperature": 0}


def test_the_official_client_gets_a_message(client):
    message = client.messages.create(
        model=BUILTIN, max_tokens=50, messages=QUESTION, extra_body=GREEDY
    )
    assert "Paris" in message.content[0].text
    assert (message.stop_reason, message.stop_sequence) == ("end_turn", None)
    assert message.model == BUILTIN
    assert message.id.startswith("msg_")
    assert message._request_id
    assert message.usage.output_tokens > 3
    Message.model_validate(message.to_dict())


def test_the_stream_helper_makes_the_same_message(client):
    asked = {"model": BUILTIN, "max_tokens": 50, "messages": QUESTION, "extra_body": GREEDY}
    whole = client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        events = list(stream)
        final = stream.get_final_message()
    assert final.to_dict() == whole.to_dict() | {"id": final.id}
    texts = [event.text for event in events if event.type == "text"]
    assert len(texts) > 2
    assert "".join(texts) == whole.content[0].text
    assert events[0].message.usage.input_tokens == whole.usage.input_tokens


def test_a_stream_is_named_events_without_the_end_of_openais(server):
    reply = ask(server, stream=True, max_tokens=3)
    assert reply.headers["content-type"].startswith("text/event-stream")
    names = [line for line in reply.text.splitlines() if line.startswith("event: ")]
    assert names[:3] == ["event: message_start", "event: ping", "event: content_block_start"]
    assert names[-3:] == [
        "event: content_block_stop",
        "event: message_delta",
        "event: message_stop",
    ]
    assert "[DONE]" not in reply.text
    assert "chatcmpl" not in reply.text


def test_a_count_is_what_a_message_then_takes(client):
    asked = {"model": BUILTIN, "messages": QUESTION, "system": "You are kind."}
    counted = client.messages.count_tokens(**asked)
    message = client.messages.create(**asked, max_tokens=1)
    assert counted.input_tokens == message.usage.input_tokens
    more = client.messages.count_tokens(**asked | {"system": "You are kind, and always brief."})
    assert more.input_tokens > counted.input_tokens


def test_the_model_reads_what_a_chat_would_have_it_read(client, server):
    said = [
        {"role": "user", "content": "My name is Ada. Remember it."},
        {"role": "assistant", "content": "Hello Ada!"},
        {"role": "user", "content": "What is my name?"},
    ]
    message = client.messages.create(
        model=BUILTIN, max_tokens=20, system="You are kind.", messages=said, extra_body=GREEDY
    )
    chat = httpx.post(
        f"{server.url}/v1/chat/completions",
        json={
            "model": BUILTIN,
            "max_tokens": 20,
            "messages": [{"role": "system", "content": "You are kind."}, *said],
            "temperature": 0,
        },
        timeout=60,
    ).json()
    assert message.usage.input_tokens == chat["usage"]["prompt_tokens"]
    assert message.content[0].text == chat["choices"][0]["message"]["content"]


def test_an_answer_that_was_begun_is_gone_on_with(client):
    begun = [*QUESTION, {"role": "assistant", "content": "The capital of France is"}]
    message = client.messages.create(
        model=BUILTIN, max_tokens=30, messages=begun, extra_body=GREEDY
    )
    text = message.content[0].text
    assert text.startswith(" Paris")


def test_max_tokens_cuts_a_message(client):
    message = client.messages.create(model=BUILTIN, max_tokens=3, messages=QUESTION)
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 3


@pytest.mark.parametrize("streamed", [True, False])
def test_a_stop_sequence_is_named_and_never_told(client, server, streamed):
    asked = {
        "model": BUILTIN,
        "max_tokens": 50,
        "messages": QUESTION,
        "stop_sequences": ["nowhere", " is Pa"],
        "extra_body": GREEDY,
    }
    if streamed:
        with client.messages.stream(**asked) as stream:
            message = stream.get_final_message()
    else:
        message = client.messages.create(**asked)
    assert message.content[0].text == "The capital of France"
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", " is Pa")
    assert message.usage.input_tokens > 10
    assert 4 <= message.usage.output_tokens <= 8
    until(lambda: busy(server) == 0, 5)


def test_a_full_context_is_told_apart_from_max_tokens(client, server):
    load(server, "tiny", max_seq_length=512)
    message = client.messages.create(model="tiny", max_tokens=5000, messages=QUESTION)
    assert message.stop_reason == "model_context_window_exceeded"
    assert message.usage.input_tokens + message.usage.output_tokens <= 512


def test_a_model_thinks_in_a_block_of_its_own(client, thinking_model):
    asked = {"model": thinking_model, "max_tokens": 1500, "messages": QUESTION}
    with client.messages.stream(
        **asked, thinking={"type": "enabled", "budget_tokens": 1024}
    ) as stream:
        thought = "".join(event.thinking for event in stream if event.type == "thinking")
        message = stream.get_final_message()
    thinking, text = message.content
    assert (thinking.type, text.type) == ("thinking", "text")
    assert thinking.thinking == thought
    assert len(thought.split()) > 100
    assert thinking.signature
    assert "<think>" not in text.text
    assert "</think>" not in text.text

    again = [*QUESTION, {"role": "assistant", "content": message.content}, *QUESTION]
    plain = client.messages.create(
        model=thinking_model, max_tokens=5, messages=again, thinking={"type": "disabled"}
    )
    assert [block.type for block in plain.content] == ["text"]


def test_a_tool_is_called_and_its_result_read(client, model_with_tools):
    asked = {
        "model": model_with_tools,
        "max_tokens": 200,
        "messages": asked_of_two_towns(),
        "tools": [WEATHER, CLOCK],
        "tool_choice": {"type": "tool", "name": "weather", "disable_parallel_tool_use": True},
        "extra_body": GREEDY,
    }
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    message = client.messages.create(**asked)
    assert streamed.content[-1].input == message.content[-1].input
    call = message.content[-1]
    assert message.stop_reason == "tool_use"
    assert (call.type, call.name) == ("tool_use", "weather")
    assert call.id.startswith("toolu_")
    assert list(call.input) == ["town"]
    assert sum(block.type == "tool_use" for block in message.content) == 1

    result = {"type": "tool_result", "tool_use_id": call.id, "content": "foggy"}
    asked["messages"] += [
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": [result]},
    ]
    answer = client.messages.create(**asked | {"tool_choice": {"type": "none"}})
    assert "foggy" in answer.content[0].text


def test_parallel_calls_are_blocks_of_one_message(client, model_with_tools):
    tools = [
        {"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]}
        for tool in calling.TOOLS
    ]
    asks = {"role": "user", "content": "Call alpha and beta."}
    calls, results = [], []
    for name in ("alpha", "beta"):
        calls.append({"type": "tool_use", "id": name, "name": name, "input": {"x": "1"}})
        results.append({"type": "tool_result", "tool_use_id": name, "content": "done"})
    shown = [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    with client.messages.stream(
        model=model_with_tools,
        max_tokens=200,
        messages=[asks, *shown, asks, *shown, asks],
        tools=tools,
        tool_choice={"type": "any"},
        extra_body=GREEDY,
    ) as stream:
        message = stream.get_final_message()
    called = [block for block in message.content if block.type == "tool_use"]
    assert [call.name for call in called] == ["alpha", "beta"]
    assert len({call.id for call in called}) == 2
    assert all(list(call.input) == ["x"] for call in called)
    assert message.stop_reason == "tool_use"


def test_tools_count_as_input(client, model_with_tools):
    asked = {"model": model_with_tools, "messages": QUESTION}
    plain = client.messages.count_tokens(**asked)
    with_tools = client.messages.count_tokens(**asked, tools=[WEATHER])
    assert with_tools.input_tokens > plain.input_tokens + 20


def test_pictures_are_seen_wherever_they_stand(client, server):
    load(server, "seeing/tiny")
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}

    def count(*pictures):
        look = {"type": "text", "text": "look"}
        result = {"type": "tool_result", "tool_use_id": "toolu_1"}
        messages = [
            {"role": "user", "content": [*pictures, look, *pictures]},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result | {"content": [look, *pictures]}]},
        ]
        asked = {"model": "seeing/tiny", "messages": messages}
        counted = client.messages.count_tokens(**asked)
        message = client.messages.create(**asked, max_tokens=1)
        assert counted.input_tokens == message.usage.input_tokens
        return counted.input_tokens

    assert count(picture("WEBP")) - count() >= 3 * TOKENS_OF_A_PICTURE


def test_a_picture_for_a_model_that_reads_text_is_refused(client):
    shown = [{"role": "user", "content": [picture("PNG")]}]
    with pytest.raises(anthropic.BadRequestError) as refusal:
        client.messages.create(model=BUILTIN, max_tokens=5, messages=shown)
    assert refusal.value.body["error"]["code"] == "model_cannot_see"


def test_a_picture_that_is_none_is_refused(client):
    broken = picture("PNG")
    broken["source"]["data"] = "bm8gcGljdHVyZQ=="
    with pytest.raises(anthropic.APIStatusError) as refusal:
        client.messages.create(
            model=BUILTIN,
            max_tokens=5,
            system="Be kind.",
            messages=[{"role": "user", "content": [broken]}],
        )
    assert 400 <= refusal.value.status_code < 500
    assert refusal.value.body["error"]["param"] == "messages"


def test_a_wrong_model_is_not_answered_by_another(client):
    with pytest.raises(anthropic.NotFoundError) as refusal:
        client.messages.create(model="org/nothing", max_tokens=5, messages=QUESTION)
    assert refusal.value.type == "not_found_error"
    assert refusal.value.body["error"]["code"] == "model_not_downloaded"
    assert refusal.value.body["request_id"] == refusal.value.request_id


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"temperature": 2}, 400, "temperature"),
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "assistant", "content": "Hi"}]}, 400, "messages.0.role"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, 501, "tools.0"),
        ({"n": 2}, 400, "n"),
    ],
)
def test_what_cannot_be_is_refused_in_anthropics_shape(server, fields, status, param):
    reply = ask(server, **fields)
    assert reply.status_code == status
    told = reply.json()
    assert told["type"] == "error"
    assert told["error"]["type"] == "invalid_request_error"
    assert told["error"]["param"] == param
    assert told["request_id"] == reply.headers["request-id"]


@pytest.mark.parametrize("body", [b"", b"{", b'{"messages": "\xff"}'])
def test_a_body_that_is_no_request_is_a_400(server, body):
    headers = {"content-type": "application/json"}
    for route in ("messages", "messages/count_tokens"):
        reply = httpx.post(f"{server.url}/v1/{route}", content=body, headers=headers)
        assert reply.status_code == 400
        assert reply.json()["error"]["type"] == "invalid_request_error"


def test_a_prompt_that_is_too_long_is_told_with_both_numbers(client, server):
    load(server, "tiny", max_seq_length=512)
    long = [{"role": "user", "content": "word " * 900}]
    with pytest.raises(anthropic.BadRequestError, match="512"):
        client.messages.create(model="tiny", max_tokens=5, messages=long)


def test_a_message_is_cancelled_by_its_id(client, server):
    load(server, "tiny")

    def cancel():
        until(lambda: busy(server) == 1, 20)
        reply = httpx.post(f"{server.url}/cancel", json={"cancel_id": "mine"})
        assert reply.json()["status"] == "cancelled"

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(anthropic.APIStatusError) as end:
        client.messages.create(
            model="tiny", max_tokens=8000, messages=QUESTION, extra_body={"cancel_id": "mine"}
        )
    canceller.join()
    assert end.value.body["error"]["code"] == "request_cancelled"
    until(lambda: busy(server) == 0, 5)


def test_a_reader_who_leaves_frees_the_engine(client, server):
    load(server, "tiny")
    asked = {"model": "tiny", "max_tokens": 8000, "messages": QUESTION}
    with client.messages.stream(**asked) as stream:
        next(event for event in stream if event.type == "text")
        assert busy(server) == 1
    until(lambda: busy(server) == 0, 5)


def test_a_wrong_key_is_refused_in_anthropics_shape(home):
    with serving(home, ELOQUIO_API_KEY="right", ELOQUIO_LOAD_ON_START="false") as server:
        client = Anthropic(base_url=server.url, api_key="wrong", max_retries=0)
        with pytest.raises(anthropic.AuthenticationError) as refusal:
            client.messages.create(model=BUILTIN, max_tokens=5, messages=QUESTION)
        assert refusal.value.type == "authentication_error"
        client = Anthropic(base_url=server.url, api_key="right", max_retries=0)
        assert client.messages.count_tokens(model=BUILTIN, messages=QUESTION).input_tokens > 10


def test_an_engine_that_crashes_in_a_message_ends_its_stream_with_an_error(home, tmp_path):
    event = 'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
    program = stand_in.write(tmp_path / "llama-server", streams=[event], then="crash")
    with serving(home, LLAMA_SERVER_PATH=str(program)) as server:
        until(lambda: httpx.get(f"{server.url}/ready").status_code == 200, 60)
        text = ask(server, stream=True).text
        assert "message_stop" not in text
        name, data = text.rstrip().split("\n\n")[-1].split("\n")
        assert name == "event: error"
        told = json.loads(data.removeprefix("data: "))
        assert (told["type"], told["error"]["type"]) == ("error", "api_error")
        assert told["error"]["code"] == "engine_crashed"
        until(lambda: httpx.get(f"{server.url}/ready").status_code == 200, 60)
        with (
            pytest.raises(anthropic.APIStatusError, match="SIGSEGV"),
            client_of(server).messages.stream(
                model=BUILTIN, max_tokens=5, messages=QUESTION
            ) as stream,
        ):
            stream.get_final_message()
