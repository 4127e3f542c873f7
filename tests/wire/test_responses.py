"""Responses through a real server to the real engine, with the official client."""

import json

import httpx2 as httpx
import openai
import pytest
from openai import OpenAI
from openai.types.responses import Response
from pydantic import BaseModel

from eloquio.doctor.faults import stand_in
from fixtures.running import BUILTIN, CAPITAL, place, serving, until

TOOL = {
    "type": "function",
    "name": "weather",
    "description": "Tells the weather in a town.",
    "parameters": {
        "type": "object",
        "properties": {"town": {"type": "string", "enum": ["Oslo", "Rome"]}},
        "required": ["town"],
        "additionalProperties": False,
    },
    "strict": True,
}
# ChatML, with a place for tools and their calls.
TEMPLATE = """\
{%- if tools %}{{- '<|im_start|>system\\nCall a function by <tool_call>{"name": …, "arguments": …}\
</tool_call>.\\n' }}{%- for tool in tools %}{{- tool | tojson }}{{- '\\n' }}{%- endfor %}\
{{- '<|im_end|>\\n' }}{%- endif %}\
{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}\
{%- if message.content is string %}{{- message.content }}{%- endif %}\
{%- for call in message.tool_calls or [] %}\
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}\
{{- call.function.arguments | tojson }}{{- '}\\n</tool_call>' }}{%- endfor %}\
{{- '<|im_end|>\\n' }}{%- endfor %}\
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""


def example(town, weather):
    call = {"type": "function_call", "call_id": town, "name": "weather"}
    return [
        {"role": "user", "content": f"What is the weather in {town}?"},
        call | {"arguments": json.dumps({"town": town})},
        {"type": "function_call_output", "call_id": town, "output": weather},
        {"role": "assistant", "content": f"It is {weather} in {town}."},
    ]


# So small a model calls a function only where it has seen it done.
EXAMPLES = [*example("Oslo", "cold"), *example("Rome", "warm")]


@pytest.fixture(scope="module")
def server(tmp_path_factory, real_model, tiny_model):
    home = tmp_path_factory.mktemp("home")
    place(real_model, home / "models" / f"{BUILTIN}.gguf")
    place(tiny_model, home / "models" / "tiny.gguf")
    with serving(home) as running:
        yield running


@pytest.fixture
def client(server):
    until(lambda: httpx.get(f"{server.url}/ready").status_code == 200, 60)
    with client_of(server) as client:
        yield client


@pytest.fixture
def model_with_tools(server):
    body = {"model_path": BUILTIN, "chat_template_override": TEMPLATE}
    loaded = httpx.post(f"{server.url}/load", json=body, timeout=60)
    assert loaded.json()["supports_tools"], loaded.text
    return BUILTIN


def client_of(server):
    return OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


def ask(server, **fields):
    body = {"model": BUILTIN, "input": CAPITAL, "temperature": 0} | fields
    return httpx.post(f"{server.url}/v1/responses", json=body, timeout=60)


def test_the_official_client_gets_a_response(client):
    response = client.responses.create(model=BUILTIN, input=CAPITAL, temperature=0)
    assert "Paris" in response.output_text
    assert response.status == "completed"
    assert response.model == BUILTIN
    usage = response.usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.input_tokens > 10
    Response.model_validate(response.model_dump())


def test_the_stream_helper_makes_the_same_response(client):
    whole = client.responses.create(model=BUILTIN, input=CAPITAL, temperature=0)
    with client.responses.stream(model=BUILTIN, input=CAPITAL, temperature=0) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert final.output_text == whole.output_text
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(pieces) > 2
    assert "".join(pieces) == whole.output_text
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_instructions_and_all_that_was_said_reach_the_model(client):
    def counted(*said, **more):
        return client.responses.input_tokens.count(model=BUILTIN, input=said, **more).input_tokens

    said = [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Hello Ada!"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "What is my name?"}]},
    ]
    counts = [counted(*said[:1]), counted(*said[:2]), counted(*said)]
    assert counts[0] < counts[1] < counts[2]
    assert counted(*said, instructions=" ".join(["Be brief."] * 20)) > counts[2]


def test_a_response_can_be_sent_back_as_it_came(client):
    first = client.responses.create(model=BUILTIN, input=CAPITAL, temperature=0)
    again = [{"role": "user", "content": CAPITAL}, *first.output]
    second = client.responses.create(
        model=BUILTIN, input=[*again, {"role": "user", "content": "And of Italy?"}]
    )
    assert second.status == "completed"


@pytest.mark.parametrize("streamed", [True, False])
def test_a_cut_response_is_incomplete(client, streamed):
    asked = {"model": BUILTIN, "input": CAPITAL, "max_output_tokens": 3}
    if streamed:
        *_, last = client.responses.create(**asked, stream=True)
        assert last.type == "response.incomplete"
        response = last.response
    else:
        response = client.responses.create(**asked)
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.usage.output_tokens == 3
    assert response.output[0].status == "incomplete"


class Town(BaseModel):
    town: str


class Capital(BaseModel):
    country: str
    capital: str


def test_a_text_is_parsed_into_the_model_that_was_asked_for(client):
    response = client.responses.parse(
        model=BUILTIN, input=CAPITAL, text_format=Capital, temperature=0, max_output_tokens=80
    )
    assert isinstance(response.output_parsed, Capital)
    assert response.text.format.type == "json_schema"


def test_a_json_object_comes_bare(client):
    response = client.responses.create(
        model=BUILTIN,
        input="Tell the capital of France as a JSON object in a code block.",
        text={"format": {"type": "json_object"}},
        temperature=0,
        max_output_tokens=200,
    )
    assert response.output_text.lstrip().startswith("{")


def test_the_input_is_counted_as_the_response_counts_it(client):
    asked = {"model": BUILTIN, "input": CAPITAL, "instructions": "Be brief."}
    counted = client.responses.input_tokens.count(**asked)
    response = client.responses.create(**asked, max_output_tokens=1)
    assert counted.object == "response.input_tokens"
    assert counted.input_tokens == response.usage.input_tokens


@pytest.mark.parametrize("top", [0, 2])
def test_logprobs_come_with_the_text(client, top):
    asked = {"model": BUILTIN, "input": CAPITAL, "temperature": 0, "max_output_tokens": 4}
    asked |= {"top_logprobs": top, "include": ["message.output_text.logprobs"]}
    response = client.responses.create(**asked)
    [part] = response.output[0].content
    assert "".join(token.token for token in part.logprobs) == part.text
    assert {len(token.top_logprobs) for token in part.logprobs} == {top}
    assert all(token.logprob <= 0 for token in part.logprobs)


def test_a_function_is_called_and_its_output_goes_back(client, model_with_tools):
    asked = {"model": model_with_tools, "tools": [TOOL], "temperature": 0}
    question = [*EXAMPLES, {"role": "user", "content": "What is the weather in Oslo?"}]
    first = client.responses.create(
        **asked, input=question, tool_choice="required", max_output_tokens=100
    )
    [call] = first.output
    assert first.status == "completed"
    assert (call.type, call.name) == ("function_call", "weather")
    assert json.loads(call.arguments)["town"] in ("Oslo", "Rome")
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    second = client.responses.create(
        **asked, input=[*question, call, output], tool_choice="none", max_output_tokens=60
    )
    assert "sunny" in second.output_text


def test_a_call_is_streamed_in_pieces(client, model_with_tools):
    with client.responses.stream(
        model=model_with_tools,
        tools=[openai.pydantic_function_tool(Town, name="weather")],
        input=[*EXAMPLES, {"role": "user", "content": "What is the weather in Oslo?"}],
        tool_choice={"type": "function", "name": "weather"},
        temperature=0,
        max_output_tokens=100,
    ) as stream:
        events = list(stream)
        [call] = stream.get_final_response().output
    pieces = [e.delta for e in events if e.type == "response.function_call_arguments.delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == call.arguments
    assert isinstance(call.parsed_arguments, Town)


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"previous_response_id": "resp_1"}, 501, "previous_response_id"),
        ({"background": True}, 501, "background"),
        ({"tools": [{"type": "web_search"}]}, 501, "tools.0.type"),
        ({"input": []}, 400, "input"),
        ({"input": [{"role": "robot", "content": "Hi"}]}, 400, "input.0.role"),
        ({"temperature": -1}, 400, "temperature"),
        ({"colour": "red"}, 400, "colour"),
    ],
)
def test_what_cannot_be_done_is_refused_by_its_name(server, fields, status, param):
    reply = ask(server, **fields)
    assert reply.status_code == status
    assert reply.json()["error"]["param"] == param
    assert reply.json()["error"]["next_step"]


def test_a_picture_for_a_model_that_cannot_see_is_refused(client, server):
    # The smallest GIF: one pixel.
    picture = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    part = {"type": "input_image", "image_url": picture}
    reply = ask(server, input=[{"role": "user", "content": [part]}], stream=True)
    assert reply.status_code in (400, 501)
    assert reply.json()["error"]["param"] == "input"


def test_a_wrong_model_is_not_answered_by_another(client):
    with pytest.raises(openai.NotFoundError) as refusal:
        client.responses.create(model="org/nothing", input=CAPITAL)
    assert refusal.value.code == "model_not_downloaded"


def test_what_is_too_long_is_refused_before_the_first_event(client, server):
    reply = ask(server, input="word " * 9000, stream=True)
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
def test_a_stored_response_is_never_there(server, method):
    reply = httpx.request(method, f"{server.url}/v1/responses/resp_1")
    assert reply.status_code == 501
    assert reply.json()["error"]["code"] == "not_implemented"


def test_the_bytes_of_a_stream_have_their_headers_and_no_done(client, server):
    reply = ask(server, stream=True, max_output_tokens=5)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    assert reply.text.startswith("event: response.created\ndata: ")
    assert "[DONE]" not in reply.text
    assert "event: response.incomplete" in reply.text


def test_a_response_that_is_cancelled_says_so(server):
    body = {"model": "tiny", "input": CAPITAL, "stream": True, "cancel_id": "mine"}
    with httpx.stream("POST", f"{server.url}/v1/responses", json=body, timeout=60) as reply:
        lines = reply.iter_lines()
        assert any("output_text.delta" in line for line in lines)
        ended = httpx.post(f"{server.url}/v1/cancel", json={"cancel_id": "mine"}, timeout=15)
        assert ended.json()["status"] == "cancelled"
        last = [json.loads(line[6:]) for line in lines if line.startswith("data: ")][-1]
    assert last["type"] == "response.failed"
    assert last["response"]["status"] == "failed"
    assert last["response"]["output"][0]["content"][0]["text"]


@pytest.mark.parametrize("streamed", [True, False])
def test_a_closed_connection_ends_the_generation(server, streamed):
    body = {"model": "tiny", "input": CAPITAL, "stream": streamed}
    loaded = httpx.post(f"{server.url}/load", json={"model_path": "tiny"}, timeout=60)
    assert loaded.status_code == 200
    if streamed:
        with httpx.stream("POST", f"{server.url}/v1/responses", json=body, timeout=60) as reply:
            assert any("output_text.delta" in line for line in reply.iter_lines())
    else:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/v1/responses", json=body, timeout=1)
    until(lambda: [engine["busy"] for engine in engines_of(server)] == [0])


def engines_of(server):
    return httpx.get(f"{server.url}/v1/status").json()["engines"]


def test_an_engine_that_crashes_in_a_response_ends_it_as_failed(home, tmp_path):
    event = 'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
    program = stand_in.write(
        tmp_path / "llama-server", says=["about to fall"], streams=[event], then="crash"
    )
    with serving(home, LLAMA_SERVER_PATH=str(program)) as server:
        until(lambda: httpx.get(f"{server.url}/ready").status_code == 200, 60)
        text = ask(server, stream=True).text
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
        assert [each["type"] for each in events[-2:]] == ["error", "response.failed"]
        assert events[-2]["code"] == "engine_crashed"
        assert "about to fall" in events[-2]["error"]["evidence"]
        assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hel"
        with client_of(server) as client, pytest.raises(openai.APIError, match="SIGSEGV"):
            list(client.responses.create(model=BUILTIN, input=CAPITAL, stream=True))
