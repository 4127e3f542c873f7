"""Proves the engine: a real one is started, asked, and ended."""

import asyncio
from pathlib import Path
from typing import Any

from eloquio.doctor.check import Check
from eloquio.engines.pool import Pool
from eloquio.engines.spec import EngineOptions, EngineSpec, MemoryPlan
from eloquio.engines.state import Ready
from eloquio.errors import EloquioError, ModelNotFound
from eloquio.settings import Settings

QUESTION = "What is the capital of France? Answer briefly."
EXPECTED = "Paris"

_ANSWER_SECONDS = 120
_CONTEXT_LENGTH = 2048


async def answers(settings: Settings, model: str, path: Path) -> Check:
    """Ask the built-in model for the capital of France, by the same ways as the server would."""
    pool = Pool(settings, _plan_nothing)
    try:
        return await _ask(pool, _spec(model, path))
    except EloquioError as error:
        return Check("answer", "fail", error.message, error.next_step, error.evidence)
    except TimeoutError:
        sentence = f"The engine gave no answer in {_ANSWER_SECONDS} s."
        return Check("answer", "fail", sentence, "Look what else keeps the machine busy.")
    finally:
        await pool.close()


async def _ask(pool: Pool, spec: EngineSpec) -> Check:
    engine, _ = await pool.load(spec)
    load_seconds = engine.state.load_seconds if isinstance(engine.state, Ready) else 0.0
    body = {
        "messages": [{"role": "user", "content": QUESTION}],
        "temperature": 0,
        "max_tokens": 64,
    }
    async with asyncio.timeout(_ANSWER_SECONDS), engine.serving() as client:
        reply = await client.post("/v1/chat/completions", json=body)
        text = await reply.text()
        if reply.status != 200:
            return Check("answer", "fail", f"The engine said {reply.status}.", evidence=text)
        return _judge(await reply.json(), load_seconds)


def _judge(completion: dict[str, Any], load_seconds: float) -> Check:
    answer = completion["choices"][0]["message"]["content"].strip()
    tokens_per_second = completion["timings"]["predicted_per_second"]
    sentence = (
        f"Loaded in {load_seconds:.1f} s and asked for the capital of France, it said "
        f"“{answer}”, at {tokens_per_second:.0f} tokens a second."
    )
    if EXPECTED in answer:
        return Check("answer", "ok", sentence)
    return Check(
        "answer",
        "fail",
        sentence,
        "The engine computes wrongly: build one for this processor, with scripts/start --build.",
    )


def _spec(model: str, path: Path) -> EngineSpec:
    return EngineSpec(
        model=model,
        display_name=model,
        kind="llama_server",
        task="chat",
        model_path=path,
        memory=MemoryPlan(
            weights_bytes=path.stat().st_size,
            kv_bytes=0,
            projector_bytes=0,
            compute_bytes=0,
            device="cpu",
        ),
        options=EngineOptions(context_length=_CONTEXT_LENGTH, n_parallel=1),
    )


async def _plan_nothing(model: str) -> EngineSpec:
    raise ModelNotFound(f"{model} isn't part of this check.")
