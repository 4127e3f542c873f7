"""The official client for Node, in a process of its own: its cases stand in `openai.mjs`."""

import subprocess
from functools import partial
from pathlib import Path

from conformance.case import Cases, Need
from conformance.target import TIMEOUT_SECONDS, Target
from eloquio.setup.checkout import Checkout
from eloquio.setup.node import find_node

SCRIPT = Path(__file__).with_name("openai.mjs")
NAMES: dict[str, tuple[Need, ...]] = {
    "an_answer_is_whole": (),
    "a_stream_says_what_the_whole_answer_says": (),
    "a_stream_tells_its_usage_where_it_is_asked_for": (),
    "the_stream_helper_tells_text_as_it_comes": (),
    "two_choices_are_streamed_beside_each_other": (),
    "an_answer_is_parsed_by_its_schema": ("schema",),
    "a_call_that_is_required_is_made": ("tools",),
    "the_stream_helper_tells_a_call": ("tools",),
    "the_runner_calls_a_function_and_goes_on": ("tools",),
    "each_token_has_its_probability": ("logprobs",),
    "a_completion_is_streamed": ("completions",),
    "an_embedding_is_decoded": ("embeddings",),
    "a_response_is_whole": ("responses",),
    "the_helper_makes_of_a_streamed_response_what_comes_whole": ("responses",),
    "a_model_is_found_by_its_name": (),
    "an_unknown_model_is_not_found": (),
    "a_wrong_field_is_a_bad_request": (),
    "a_reply_has_the_id_of_its_request": (),
    "a_stream_that_is_aborted_frees_the_engine": ("status",),
    "the_helper_that_is_aborted_says_so": (),
}

cases = Cases("node", "node")


def _try(target: Target, name: str) -> None:
    node = find_node(Checkout.here())
    assert node is not None, "there is no Node.js"
    models = [target.model, target.models.embedding or ""]
    done = subprocess.run(
        [node.folder / "node", SCRIPT, target.base_url, *models, name],
        env=node.environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


for _name, _needs in NAMES.items():
    cases.add(_name, partial(_try, name=_name), *_needs)
