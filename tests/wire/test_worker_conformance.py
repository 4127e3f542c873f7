"""The conformance script's cases on a real worker, but for the clients' own that need no engine."""

import shutil
from pathlib import Path

import httpx2 as httpx
import pytest

from conformance.all_cases import CASES
from conformance.target import Models, Target
from fixtures import worker_folders
from fixtures.running import serving

TOOLS = (Path(__file__).parents[1] / "conformance" / "tools.jinja").read_text()
# What these try of an engine the others try too, and a run of them all would take twice as long.
LEFT_TO_LLAMA_SERVER = ("node/", "agents/", "models/")
OURS = [
    case
    for case in CASES
    if not case.name.startswith(LEFT_TO_LLAMA_SERVER)
    and not case.needs & {"embeddings", "thinking"}
]


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    home = tmp_path_factory.mktemp("conformance")
    shutil.copytree(worker_folders.smollm2(), home / "models/org/smol")
    with serving(home, "--no-load-on-start") as server:
        body = {"model_path": "org/smol", "chat_template_override": TOOLS, "pin": True}
        reply = httpx.post(f"{server.url}/load", json=body, timeout=300)
        assert reply.status_code == 200, reply.text
        with Target(server.url, Models("org/smol")) as target:
            yield target


@pytest.mark.parametrize("case", OURS, ids=lambda case: case.name)
def test_a_client_may_rely_on_it(case, target):
    case.trial(target)


def test_they_are_most_of_all_cases():
    assert len(OURS) >= 200
