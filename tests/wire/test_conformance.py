"""Every case of the conformance script on a real server with the real engine."""

import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import pytest

from conformance.all_cases import CASES
from conformance.target import Models, Target
from fixtures.running import BUILTIN, place, serving
from fixtures.tiny_embedding import write_tiny_embedding_model

TESTS = Path(__file__).parents[1]
TOOLS = (TESTS / "conformance" / "tools.jinja").read_text()
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
    home = tmp_path_factory.mktemp("conformance")
    place(real_model, home / "models" / f"{BUILTIN}.gguf")
    place(tiny_model, home / "models" / "thinker.gguf")
    write_tiny_embedding_model(home / "models" / "embedder.gguf")
    with serving(home, ELOQUIO_LOAD_ON_START="false") as running:
        load(running, BUILTIN, chat_template_override=TOOLS)
        load(running, "thinker", chat_template_override=THINKING)
        load(running, "embedder")
        yield running


@pytest.fixture(scope="module")
def target(server):
    with Target(server.url, Models(BUILTIN, "embedder", "thinker")) as target:
        yield target


def load(server, model, **fields):
    body = {"model_path": model, "keep_others": True, "pin": True} | fields
    reply = httpx.post(f"{server.url}/load", json=body, timeout=60)
    assert reply.status_code == 200, reply.text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_client_may_rely_on_it(case, target):
    case.trial(target)


def test_there_are_enough_cases_each_with_a_name_of_its_own():
    names = [case.name for case in CASES]
    assert len(names) >= 100
    assert len(set(names)) == len(names)


def script(server, *arguments):
    command = [sys.executable, "-m", "conformance", "--base-url", server.url, "--model", BUILTIN]
    return subprocess.run(
        [*command, *arguments],
        capture_output=True,
        text=True,
        cwd=TESTS,
        timeout=60,
        check=False,
    )


def test_the_script_tells_what_held_and_what_a_server_lacks(server):
    done = script(server, "--lacks", "tokenize", "--only", "models/*", "*can_be_forbidden")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok        models/the_model_is_among_those_listed" in done.stdout
    assert "lacking   sampling/a_token_can_be_forbidden  (tokenize)" in done.stdout
    assert done.stdout.endswith("4 ok, 1 lacking\n")


def test_the_script_tells_what_failed_and_where(server):
    done = script(server, "--embedding-model", BUILTIN, "--only", "embeddings/a_text_*")
    assert done.returncode == 1
    assert "failed    embeddings/a_text_becomes_one_vector" in done.stdout
    assert "not for embedding" in done.stdout
    assert done.stdout.endswith("1 failed\n")


def test_the_script_does_not_pass_where_nothing_was_tried(server):
    assert script(server, "--only", "nothing/*").returncode == 2
    assert script(server, "--only", "embeddings/*").returncode == 2
