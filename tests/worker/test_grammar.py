"""Answers that keep to a form, with a real vocabulary."""

import pytest
import torch

from eloquio.worker.grammar import Grammar, Grammars, Thinking
from eloquio.worker.load import Loaded, load
from eloquio.worker.progress import Progress
from eloquio.worker.reasoning import Harmony, Tags, end_of_reasoning
from eloquio.worker_plan import WorkerPlan

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture(scope="module")
def loaded(smollm2) -> Loaded:
    plan = WorkerPlan(model="smol", model_path=str(smollm2), kind="text", dtype="float32")
    return load(plan, Progress(0))


@pytest.fixture(scope="module")
def grammar(loaded: Loaded) -> Grammar:
    asked = Grammars(loaded).asked_by({"json_schema": SCHEMA})
    assert asked is not None
    return asked


def decoded(loaded: Loaded, ids: list[int]) -> str:
    return loaded.tokenizer.decode(ids, skip_special_tokens=False)


def tokens(loaded: Loaded, text: str) -> list[int]:
    return loaded.tokenizer(text, add_special_tokens=False)["input_ids"]


def possible(held, loaded: Loaded) -> set[int]:
    scores = held.allowed(torch.zeros(loaded.config.vocab_size))
    return set(torch.isfinite(scores).nonzero().flatten().tolist())


def beginnings(loaded: Loaded, ids: set[int]) -> set[str]:
    return {decoded(loaded, [token])[:1] for token in ids}


def test_an_answer_keeps_to_its_form_from_the_first_token_on(loaded, grammar):
    assert beginnings(loaded, possible(grammar.begin(), loaded)) == {"{"}


@pytest.mark.parametrize(
    ("form", "thought"),
    [
        (Tags("<think>", "</think>", is_open=True), "So {it} is </thin or Paris.\n</think>"),
        (
            Harmony("assistant"),
            "<|channel|>analysis<|message|>Paris, I think.<|end|><|start|>assistant"
            "<|channel|>final <|constrain|>json<|message|>",
        ),
    ],
    ids=["tags", "channels"],
)
def test_a_model_thinks_freely_and_then_keeps_to_the_form(loaded, grammar, form, thought):
    end = end_of_reasoning(form)
    assert end is not None
    thinking = Thinking(end, lambda ids: decoded(loaded, ids), loaded.end_ids)
    held = Grammar(grammar.compiled, grammar.vocabulary_size, thinking).begin()
    for token in tokens(loaded, thought):
        free = possible(held, loaded)
        assert token in free
        # It may not end before it has answered.
        assert not free & loaded.end_ids
        held.accept(token)
    assert beginnings(loaded, possible(held, loaded)) == {"{"}
    for token in tokens(loaded, '{"city": "Paris"}'):
        assert token in possible(held, loaded)
        held.accept(token)
    assert loaded.end_ids & possible(held, loaded)


@pytest.mark.parametrize("form", [None, Tags("<think>", "</think>")])
def test_what_has_not_begun_needs_no_end(form):
    assert end_of_reasoning(form) is None
