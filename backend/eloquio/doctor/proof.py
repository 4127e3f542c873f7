"""Proves the engine: a real one is started, asked, and ended."""

import asyncio
import json
from typing import Any

import aiohttp

from eloquio.doctor.check import Check
from eloquio.engines.inventory import Inventory
from eloquio.engines.pool import Pool
from eloquio.engines.state import Ready
from eloquio.errors import EloquioError
from eloquio.models.catalog import Catalog
from eloquio.models.loading import Planner
from eloquio.models.schema import LoadRequest
from eloquio.settings import BUILTIN_MODEL, Settings

QUESTION = "What is the capital of France? Answer briefly."
EXPECTED = "Paris"

_ANSWER_SECONDS = 120
_CONTEXT_LENGTH = 2048


async def answers(settings: Settings) -> Check:
    """Ask the built-in model for the capital of France, by the same ways as the server would."""
    inventory = Inventory(settings)
    planner = Planner(Catalog(settings, lambda: ()), inventory)
    pool = await Pool.open(settings, planner, inventory)
    try:
        return await _ask(pool, planner)
    except EloquioError as error:
        return Check("answer", "fail", error.message, error.next_step, error.evidence)
    except TimeoutError:
        sentence = f"The engine gave no answer in {_ANSWER_SECONDS} s."
        return Check("answer", "fail", sentence, "Look what else keeps the machine busy.")
    finally:
        await pool.close()


async def _ask(pool: Pool, planner: Planner) -> Check:
    wanted = LoadRequest(model_path=BUILTIN_MODEL, max_seq_length=_CONTEXT_LENGTH)
    engine, _ = await pool.load(BUILTIN_MODEL, lambda: planner.plan(wanted))
    load_seconds = engine.state.load_seconds if isinstance(engine.state, Ready) else 0.0
    body = {
        "messages": [{"role": "user", "content": QUESTION}],
        "temperature": 0,
        "max_tokens": 64,
    }
    async with asyncio.timeout(_ANSWER_SECONDS), engine.serving() as client:
        try:
            async with client.post("/v1/chat/completions", json=body) as reply:
                text = await reply.text()
        except aiohttp.ClientError:
            raise await engine.cause_of_loss(client) from None
        if reply.status != 200:
            return Check("answer", "fail", f"The engine said {reply.status}.", evidence=text)
        return _judge(json.loads(text), load_seconds)


def _judge(completion: dict[str, Any], load_seconds: float) -> Check:
    answer = completion["choices"][0]["message"]["content"].strip()
    timings = completion.get("timings")
    speed = f", at {timings['predicted_per_second']:.0f} tokens a second" if timings else ""
    sentence = (
        f"Loaded in {load_seconds:.1f} s and asked for the capital of France, it said "
        f"“{answer}”{speed}."
    )
    if EXPECTED in answer:
        return Check("answer", "ok", sentence)
    return Check(
        "answer",
        "fail",
        sentence,
        "The engine computes wrongly: build one for this processor, with scripts/start --build.",
    )
