"""Answers that go wrong between the engine and the person."""

import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from eloquio.doctor.faults.scenario import expect, meanwhile, proves, until
from eloquio.doctor.faults.serving import studio
from eloquio.doctor.faults.studio import Json, Studio

_EVERYWHERE = "你好🌍👨‍👩‍👧 ゴ ü"


@proves("The engine's own words of a fault reach the person.")
async def fails_in_its_own_words(folder: Path) -> str:
    refusal = [500, {"error": {"code": 500, "message": "the seventh tensor fell over"}}]
    async with studio(folder, {"a": {"refuses": refusal}}) as running:
        (await running.load("a")).require(200)
        (await running.chat("a")).require(502, "engine_error").says("the seventh tensor fell over")
        (await running.chat("a", stream=True)).require(502, "engine_error")
        return "502 with the engine's message, streamed or not"


@proves("An engine that breaks a stream off with an error gives one error and no [DONE].")
async def sends_an_error_in_a_stream(folder: Path) -> str:
    async with studio(folder, {"a": {"then": "error"}}) as running:
        (await running.load("a")).require(200)
        async with running.stream("a") as stream:
            error = (await stream.read()).failure("engine_error")
        expect("broke on purpose" in str(error), f"The error doesn't say why: {error}")
        # One reply is folded of a stream, and so it fails with the stream.
        (await running.chat("a")).require(502, "engine_error")
        return "one engine_error with the engine's message, streamed or not"


@proves("A stream that just stops is told as broken, not as whole.")
async def closes_a_stream_early(folder: Path) -> str:
    async with studio(folder, {"a": {"then": "close"}}) as running:
        (await running.load("a")).require(200)
        async with running.stream("a") as stream:
            (await stream.read()).failure("engine_unreachable")
        return f"{stream.tokens} tokens, then one engine_unreachable"


@proves("An answer that isn't HTTP is a typed error, and the server serves on.")
async def answers_garbage(folder: Path) -> str:
    async with studio(folder, {"a": {"answers": "\x00\x01 no HTTP at all\r\n\r\n"}}) as running:
        (await running.load("a")).require(200)
        (await running.chat("a")).require(502, "engine_unreachable")
        (await running.chat("a", stream=True)).require(502, "engine_unreachable")
        (await running.get("/health")).require(200)
        return "502 engine_unreachable, streamed or not"


@proves("A stream may be cut anywhere, inside a character too: the text arrives whole.")
async def is_cut_anywhere(folder: Path) -> str:
    sizes = (1, 2, 3, 5, 7)
    models: dict[str, Json] = {
        f"by{size}": {"text": _EVERYWHERE, "bytes_at_once": size} for size in sizes
    }
    async with studio(folder, models) as running:
        for model in models:
            (await running.load(model)).require(200)
            async with running.stream(model) as stream:
                await stream.read()
            expect(stream.text.strip() == _EVERYWHERE, f"{model} became {stream.text!r}.")
            expect(stream.is_done, f"{model} didn't end with [DONE].")
        return f"whole in pieces of {', '.join(map(str, sizes))} bytes"


@proves("When the client leaves a stream, a stall or a silence, the engine's connection is closed.")
async def is_left_by_its_client(folder: Path) -> str:
    models: dict[str, Json] = {
        "streamed": {"repeats": 10_000, "pause_seconds": 0.05},
        "stalled": {"then": "hang"},
        "silent": {"never_answers": True},
        "whole": {"never_answers": True},
    }
    slowest = 0.0
    async with studio(folder, models) as running:
        for model in models:
            (await running.load(model)).require(200)
            slowest = max(slowest, await _leave(running, model))
        return f"known to the engine after {slowest:.2f} s at most"


async def _leave(running: Studio, model: str) -> float:
    """Seconds from the client's leaving until the engine sees it."""
    if model in ("streamed", "stalled"):
        async with running.stream(model) as stream:
            await stream.read(tokens=3)
            # Leaving the block alone would wait for the rest.
            stream.leave()
    else:
        async with meanwhile(running.chat(model, stream=model == "silent")):
            await _until_noted(running, "request", model)
    left = time.monotonic()
    await _until_noted(running, "client_gone", model)
    return time.monotonic() - left


async def _until_noted(running: Studio, event: str, model: str) -> None:
    async def look() -> bool:
        return bool(running.noted(event, model))

    await until(look, f"{model} noted no {event}", seconds=15)


@proves("An engine that doesn't care that its client left can still be unloaded.")
async def ignores_that_its_client_left(folder: Path) -> str:
    behaviour = {"never_answers": True, "ignores_closed": True}
    async with studio(folder, {"a": behaviour}) as running:
        (await running.load("a")).require(200)
        async with meanwhile(running.chat("a")):
            await _until_noted(running, "request", "a")

        async def is_idle() -> bool:
            engine = await running.engine("a")
            return engine is not None and engine["busy"] == 0

        await until(is_idle, "The engine still counts as busy with a client that left")
        reply = (await running.unload("a")).require(200)
        return f"no longer counted as busy; unloaded in {reply.seconds:.2f} s"


@proves("An engine that is frozen by the system is unloaded all the same.")
async def is_frozen(folder: Path) -> str:
    async with studio(folder, {"a": {}}) as running:
        (await running.load("a")).require(200)
        os.kill(running.alive("a")[0], signal.SIGSTOP)
        reply = (await running.unload("a")).require(200)
        expect(reply.seconds < 15, f"The unload took {reply.seconds:.1f} s.")
        expect(not running.alive(), "The frozen process is still there.")
        return f"gone after {reply.seconds:.1f} s"


@proves("Binary, endless and broken lines in an engine's log disturb nothing.")
async def writes_garbage_to_its_log(folder: Path) -> str:
    async with studio(folder, {"a": {"writes_garbage": True}}) as running:
        (await running.load("a")).require(200)
        (await running.chat("a")).require(200)
        size = len(str(await running.status()))
        expect(size < 100_000, f"/status became {size} characters long.")
        return "loaded and answered; /status is of sensible length"


@proves("Why an engine failed is found in any log, however senseless, without a stop in service.",
        is_alone=True)  # fmt: skip
async def fails_after_garbage_in_its_log(folder: Path) -> str:
    async with studio(folder, {"a": {"writes_garbage": True, "exits": 1}}) as running:
        usual = max(await _health(running, lambda: True))
        async with meanwhile(running.load("a")) as loading:
            slowest = 0.0
            while not loading.done():
                slowest = max(slowest, (await running.get("/health")).require(200).seconds)
        failure = loading.result().require(502)
        expect(len(failure.text) < 10_000, f"The error is {len(failure.text)} characters long.")
        expect(slowest < 0.5 + usual, f"Meanwhile /health once took {slowest:.2f} s.")
        return f"an error of {len(failure.text)} characters; /health took {slowest:.2f} s at most"


@proves("An engine that closes its log is not taken for dead.")
async def closes_its_log(folder: Path) -> str:
    async with studio(folder, {"a": {"closes_log": True}}) as running:
        (await running.load("a")).require(200)
        for _ in range(3):
            (await running.chat("a")).require(200)
        expect(running.starts("a") == 1, "It was started anew.")
        return "loaded, and three answers of the same process"


@proves("A flood of log lines takes no memory.")
async def floods_its_log(folder: Path) -> str:
    async with studio(folder, {"quiet": {}, "loud": {"floods_bytes": 40_000_000}}) as running:
        (await running.load("quiet")).require(200)
        before = running.resident_bytes()
        (await running.load("loud")).require(200)
        grown = running.resident_bytes() - before
        expect(grown < 30 * 2**20, f"The server grew by {grown >> 20} MiB.")
        return f"40 MB of lines, and the server grew by {max(grown, 0) / 2**20:.1f} MiB"


@proves("The server answers at once while engines hang in a load, in an answer and at their end.",
        is_alone=True)  # fmt: skip
async def hangs_everywhere(folder: Path) -> str:
    models = {
        "answering": {"never_answers": True},
        "ending": {"ignores_sigterm": True},
        "loading": {"hangs": True},
    }
    async with studio(folder, models, {"ELOQUIO_STOP_GRACE_SECONDS": 8}) as running:
        usual = _percentile(await _health(running, lambda: True))
        for model in ("answering", "ending"):
            (await running.load(model, keep_others=True)).require(200)
        async with (
            meanwhile(running.chat("answering")),
            meanwhile(running.load("loading", keep_others=True)),
            meanwhile(running.unload("ending")) as unloading,
        ):
            await running.until_started("loading")
            await running.until_state("ending", "stopping")
            seconds = await _health(running, lambda: not unloading.done())
        expect(len(seconds) >= 100, f"Only {len(seconds)} polls fell into the engine's end.")
        slow = _percentile(seconds)
        # Without engines, too, a machine that is busy elsewhere takes its time.
        expect(slow < 0.2 + usual, f"p99 of /health was {slow * 1000:.0f} ms.")
        return f"p99 of /health was {slow * 1000:.1f} ms over {len(seconds)} polls"


async def _health(running: Studio, is_wanted: Callable[[], bool]) -> list[float]:
    """How long the server took to say that it is well, up to 200 times."""
    seconds: list[float] = []
    while len(seconds) < 200 and is_wanted():
        seconds.append((await running.get("/health")).require(200).seconds)
    return seconds


def _percentile(seconds: Sequence[float]) -> float:
    """The 99th."""
    return sorted(seconds)[math.ceil(0.99 * len(seconds)) - 1]
