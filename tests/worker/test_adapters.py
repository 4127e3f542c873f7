"""LoRA adapters, switched by the request."""

import asyncio
import itertools

import pytest

from eloquio.worker.failures import LoadFailed, RequestFailed
from eloquio.worker.progress import Progress
from eloquio.worker.served import Served
from eloquio.worker_plan import AdapterPlan, WorkerPlan
from fixtures.worker_answers import completion

pytestmark = pytest.mark.anyio

QUESTION = "What is the capital of France?"


@pytest.fixture(scope="module")
async def served(smollm2, says_banana, says_ahoy) -> Served:
    """Asynchronous, so that all tests share the loop that its thread tells the tokens to."""
    plan = WorkerPlan(
        model="smol",
        model_path=str(smollm2),
        kind="text",
        dtype="float32",
        context_length=512,
        adapters=(
            AdapterPlan("v1.0/banana", str(says_banana)),
            AdapterPlan("ahoy", str(says_ahoy)),
        ),
        default_adapter="v1.0/banana",
    )
    return Served.load(plan, Progress(0))


async def said(served: Served, use_adapter: object) -> str:
    fields = {"messages": [{"role": "user", "content": QUESTION}], "temperature": 0}
    answer = await completion(served, fields | {"max_tokens": 8, "use_adapter": use_adapter})
    return answer["content"]


async def test_an_adapter_changes_the_answer_and_leaves_the_base_as_it_was(served):
    assert served.properties()["adapters"] == ["v1.0/banana", "ahoy"]
    plain = await said(served, False)
    assert "Paris" in plain
    assert "Banana" in await said(served, True)
    assert "Banana" in await said(served, None)
    assert "Ahoy" in await said(served, "ahoy")
    assert await said(served, False) == plain


async def test_twenty_interleaved_requests_each_get_their_own_adapter(served):
    wanted = [None, False, True, "ahoy", "v1.0/banana"]
    alone = {repr(adapter): await said(served, adapter) for adapter in wanted}

    asked = list(itertools.islice(itertools.cycle(wanted), 20))
    answers = await asyncio.gather(*(said(served, adapter) for adapter in asked))

    assert answers == [alone[repr(adapter)] for adapter in asked]


async def test_an_adapter_that_is_not_there_is_named_with_those_that_are(served):
    with pytest.raises(RequestFailed, match=r"adapter 'v2'.*v1\.0/banana, ahoy") as refused:
        await said(served, "v2")
    assert refused.value.param == "use_adapter"


def test_a_folder_that_is_no_adapter_is_named_when_the_model_is_loaded(smollm2, tmp_path):
    plan = WorkerPlan(
        model="smol",
        model_path=str(smollm2),
        kind="text",
        adapters=(AdapterPlan("empty", str(tmp_path)),),
    )
    with pytest.raises(LoadFailed, match="empty") as failed:
        Served.load(plan, Progress(0))
    assert failed.value.cause == "adapter_refused"
