"""The batch beside transformers' own `generate`, with the real small model."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

import pytest
import torch

from eloquio.worker.batch import Batches, Room
from eloquio.worker.failures import GenerationFailed, OutOfMemory
from eloquio.worker.generator import Order, Prompt
from eloquio.worker.load import Loaded, load
from eloquio.worker.progress import Progress
from eloquio.worker.sampling import Sampling
from eloquio.worker.turns import ModelTurns
from eloquio.worker_plan import WorkerPlan

pytestmark = pytest.mark.anyio

GREEDY = Sampling(temperature=0)
TOKENS = 12
QUESTIONS = (
    "What is the capital of France? Answer briefly.",
    "Tell me a story about a fox.",
    "Count to ten.",
    "What is 2+2?",
    "Name three colours of the rainbow, and say for each of them what it reminds you of.",
    "Who wrote Hamlet?",
    "Write a haiku.",
    "Hi",
)


@pytest.fixture(scope="module")
async def loaded(smollm2) -> Loaded:
    """Asynchronous, so that all tests share the loop that the batch tells its tokens to."""
    plan = WorkerPlan(model="smol", model_path=str(smollm2), kind="text", dtype="float32")
    return load(plan, Progress(0))


@pytest.fixture
def batches(loaded):
    """Of one test: the manager gives its answers to the loop that asked."""
    return Batches(loaded.model, ModelTurns(lambda _: None), Room(slots=8, cache_tokens=4096))


@dataclass
class Expected:
    """By transformers alone, before any batch has changed how the model attends."""

    tokens: dict[str, list[int]]
    logprobs: torch.Tensor
    """Of the whole vocabulary, before each token of the answer to the first question."""


@pytest.fixture(scope="module")
def expected(loaded) -> Expected:
    tokens = {question: _generated(loaded, question) for question in QUESTIONS}
    asked = _ids(loaded, QUESTIONS[0])
    with torch.no_grad():
        logits = loaded.model(torch.tensor([asked + tokens[QUESTIONS[0]]])).logits[0]
    return Expected(tokens, torch.log_softmax(logits[len(asked) - 1 :].float(), dim=-1))


def _ids(loaded, question: str) -> list[int]:
    messages = [{"role": "user", "content": question}]
    text = loaded.tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=False
    )
    return loaded.tokenizer.encode(text, add_special_tokens=False)


def _generated(loaded, question: str) -> list[int]:
    ids = torch.tensor([_ids(loaded, question)])
    made = loaded.model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=TOKENS,
        eos_token_id=sorted(loaded.end_ids),
    )
    return made[0, ids.shape[1] :].tolist()


def _order(loaded, question: str, sampling=GREEDY, tokens=TOKENS) -> Order:
    return Order(Prompt(_ids(loaded, question)), sampling, loaded.end_ids, tokens, None)


async def _tokens(batches, order: Order) -> list[int]:
    return [step.token async for step in batches.generate(order)]


async def test_greedy_text_is_what_generate_makes_alone_and_among_eight(expected, loaded, batches):
    first = QUESTIONS[0]
    assert await _tokens(batches, _order(loaded, first)) == expected.tokens[first]

    orders = [_order(loaded, question) for question in QUESTIONS]
    together = await asyncio.gather(*(_tokens(batches, order) for order in orders))

    assert together == [expected.tokens[question] for question in QUESTIONS]


async def test_each_of_a_batch_is_drawn_by_its_own_fields(expected, loaded, batches):
    drawn = Sampling(temperature=1.5, top_p=0.95, seed=7)
    other = Sampling(temperature=1.5, top_p=0.95, seed=8)
    question = QUESTIONS[1]
    orders = [_order(loaded, question, sampling) for sampling in (drawn, GREEDY, drawn, other)]

    first, greedy, again, differs = await asyncio.gather(
        *(_tokens(batches, order) for order in orders)
    )

    assert greedy == expected.tokens[question]
    assert first == again
    assert first != greedy
    assert differs != first


async def test_log_probabilities_are_those_of_the_models_own_distribution(
    expected, loaded, batches
):
    order = _order(loaded, QUESTIONS[0], Sampling(temperature=0, top_logprobs=2), tokens=3)

    steps = [step async for step in batches.generate(order)]

    for wanted, step in zip(expected.logprobs, steps, strict=False):
        assert step.logprob == pytest.approx(float(wanted[step.token]), abs=1e-3)
        likeliest = torch.topk(wanted, 2).indices.tolist()
        assert [token for token, _ in step.alternatives] == likeliest


async def test_one_that_is_left_ends_and_the_others_go_on(expected, loaded, batches):
    async with aclosing(batches.generate(_order(loaded, QUESTIONS[1], tokens=2000))) as left:
        await anext(left)
        other = asyncio.create_task(_tokens(batches, _order(loaded, QUESTIONS[0])))
        await anext(left)
    assert await other == expected.tokens[QUESTIONS[0]]

    manager = batches._batches[None]._manager
    async with asyncio.timeout(30):
        while manager.batch_processor.has_pending_requests():
            await asyncio.sleep(0.05)


async def test_a_step_that_runs_out_of_memory_fails_its_answers_and_no_later_one(
    expected, loaded, batches, monkeypatch
):
    def runs_out(**_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    with monkeypatch.context() as patch:
        patch.setattr(loaded.model, "forward", runs_out)
        with pytest.raises(OutOfMemory, match=r"2\.00 GiB"):
            await _tokens(batches, _order(loaded, QUESTIONS[0]))

    assert await _tokens(batches, _order(loaded, QUESTIONS[0])) == expected.tokens[QUESTIONS[0]]


async def test_a_step_that_raises_fails_its_answers_and_no_later_one(
    expected, loaded, batches, monkeypatch
):
    def raises(**_):
        raise RuntimeError("the sizes don't match")

    with monkeypatch.context() as patch:
        patch.setattr(loaded.model, "forward", raises)
        with pytest.raises(GenerationFailed, match="the sizes don't match"):
            await _tokens(batches, _order(loaded, QUESTIONS[0]))

    assert await _tokens(batches, _order(loaded, QUESTIONS[0])) == expected.tokens[QUESTIONS[0]]
