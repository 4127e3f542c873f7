"""Several models, and several who ask at the same moment."""

import asyncio
from collections import Counter
from pathlib import Path

from eloquio.doctor.faults.scenario import expect, meanwhile, proves, until
from eloquio.doctor.faults.serving import studio
from eloquio.doctor.faults.studio import PAGE, Reply, Studio


@proves("Ten loads of two models at once each get a definite answer, and one engine is there.")
async def ten_loads_of_two(folder: Path) -> str:
    slow = {"moves_seconds": 1}
    async with studio(folder, {"a": slow, "b": slow}) as running:
        replies = await asyncio.gather(*(running.load("ab"[n % 2]) for n in range(10)))
        told = Counter(reply.status for reply in replies)
        expect(set(told) <= {200, 409, 499}, f"The answers were {dict(told)}.")
        await _until_one_engine(running)
        [engine] = (await running.status())["engines"]
        expect(running.alive(engine["model"]) == [engine["pid"]], "/status names another process.")
        (await running.chat(engine["model"])).require(200)
        return f"{dict(told)}; {engine['model']} is loaded, by one process"


async def _until_one_engine(running: Studio) -> None:
    async def look() -> bool:
        return len(running.alive()) == 1

    await until(look, "There isn't exactly one engine")


@proves("Ten loads of one model at once share one start.")
async def ten_loads_of_one(folder: Path) -> str:
    async with studio(folder, {"a": {"moves_seconds": 0.5}}) as running:
        for reply in await asyncio.gather(*(running.load("a") for _ in range(10))):
            reply.require(200)
        expect(running.starts("a") == 1, f"It was started {running.starts('a')} times.")
        reply = (await running.load("a")).require(200)
        expect(reply.body["status"] == "already_loaded", f"Then it was {reply.body['status']}.")
        return "one start, ten answers"


@proves("Ten requests at once for a model on disk share one start, and all are answered.")
async def ten_requests_of_one(folder: Path) -> str:
    async with studio(folder, {"a": {"moves_seconds": 0.5}}) as running:
        for reply in await asyncio.gather(*(running.chat("a") for _ in range(10))):
            reply.require(200)
        expect(running.starts("a") == 1, f"It was started {running.starts('a')} times.")
        return "one start, ten answers"


@proves("A closed tab doesn't end the load it asked for.")
async def loads_survive_who_asked(folder: Path) -> str:
    async with studio(folder, {"a": {"moves_seconds": 1.5}}) as running:
        async with meanwhile(running.load("a")):
            await running.until_started("a")
        await running.until_state("a", "ready")
        expect(running.starts("a") == 1, "It was started anew.")
        return "loaded by the same start, though nobody waited"


@proves("One model of a task at a time, unless others are to be kept.")
async def are_kept_when_asked(folder: Path) -> str:
    async with studio(folder, {"a": {}, "b": {}, "c": {}}) as running:
        (await running.load("a")).require(200)
        (await running.load("b", keep_others=True)).require(200)
        both = sorted((await running.status())["loaded"])
        expect(both == ["a", "b"], f"Loaded are {both}.")
        for model in both:
            reply = (await running.chat(model)).require(200)
            expect(reply.body["model"] == model, f"{reply.body['model']} answered for {model}.")
        told = (await running.load("c")).require(200).body["warnings"]
        await running.until_alone("c")
        loaded = (await running.status())["loaded"]
        expect(loaded == ["c"], f"Loaded are {loaded}.")
        return f"a and b beside each other; c alone, which said {told or 'nothing'}"


@proves("A model that is answering makes no room, unless that is forced.")
async def are_not_evicted_while_busy(folder: Path) -> str:
    busy = {"repeats": 10_000, "pause_seconds": 0.05}
    async with studio(folder, {"busy": busy, "next": {}}) as running:
        (await running.load("busy")).require(200)
        async with running.stream("busy") as stream:
            await stream.read(tokens=3)
            (await running.load("next")).require(409, "engine_busy").says("busy")
            before = stream.tokens
            await stream.read(tokens=before + 3)
            expect(stream.tokens >= before + 3, "The answer was disturbed.")
            (await running.load("next", force=True)).require(200)
            (await stream.read()).failure("model_unloaded")
        await running.until_alone("next")
        return "409 engine_busy and an undisturbed answer; with force, one model_unloaded"


@proves("A pinned model makes no room for another, even when that is forced.")
async def are_not_evicted_while_pinned(folder: Path) -> str:
    async with studio(folder, {"pinned": {}, "next": {}}) as running:
        (await running.load("pinned", pin=True)).require(200)
        before = running.alive("pinned")
        replies = [await running.load("next"), await running.load("next", force=True)]
        expect({reply.status for reply in replies} <= {200, 409}, f"The answers were {replies}.")
        expect(running.alive("pinned") == before, "The pinned model was unloaded.")
        (await running.unload("pinned")).require(200)
        expect(not running.alive("pinned"), "An unload by its name doesn't end it.")
        return "it stayed, until an unload named it"


@proves("A name that isn't here is never answered by another model.")
async def are_never_taken_for_each_other(folder: Path) -> str:
    async with studio(folder, {"a": {}, "b": {"text": "I am b"}}) as running:
        (await running.load("a")).require(200)
        (await running.chat("c")).require(404, "model_not_found")
        reply = (await running.chat("b")).require(200)
        expect(reply.body["model"] == "b", f"{reply.body['model']} answered for b.")
        said = reply.body["choices"][0]["message"]["content"]
        expect(said.strip() == "I am b", f"b said {said!r}.")
        return "404 for the unknown name, and b's own words under b's name"


@proves("Other options mean another engine; the same ones mean the same.")
async def are_started_anew_for_other_options(folder: Path) -> str:
    async with studio(folder, {"a": {}}) as running:
        for context, starts in ((2048, 1), (2048, 1), (4096, 2), (2048, 3)):
            (await running.load("a", max_seq_length=context)).require(200)
            count = running.starts("a")
            expect(count == starts, f"{count} starts instead of {starts} at {context} tokens.")
        expect(len(running.alive()) == 1, "An old engine is still there.")
        return "three starts for three changes, one process left"


@proves("Fifty changes of the settings and twenty loads at once harm nothing.")
async def settings_change_all_the_time(folder: Path) -> str:
    async with studio(folder, {"a": {}, "b": {}}) as running:
        bodies = [{"model_dirs": [], "load_on_start": bool(n % 2)} for n in range(50)]
        changes = (running.ask("PUT", "/v1/settings", body, PAGE) for body in bodies)
        loads = (running.load("ab"[n % 2]) for n in range(20))
        replies: list[Reply] = await asyncio.gather(*changes, *loads)
        for reply in replies[:50]:
            reply.require(200)
        told = Counter(reply.status for reply in replies[50:])
        expect(set(told) <= {200, 409, 499}, f"The loads were answered with {dict(told)}.")
        kept = (await running.get("/v1/settings", **PAGE)).require(200).body
        expect(any(body.items() <= kept.items() for body in bodies), f"What was kept is {kept}.")
        await _until_one_engine(running)
        return f"50 changes taken, loads {dict(told)}, one engine"


@proves("Two models asked for in turn are both answered or told to wait; no process is lost.")
async def two_are_asked_for_in_turn(folder: Path) -> str:
    async with studio(folder, {"a": {}, "b": {}}) as running:

        async def ask(model: str) -> list[int]:
            return [(await running.chat(model)).status for _ in range(10)]

        told = Counter(await ask("a") + await ask("b"))
        both = await asyncio.gather(ask("a"), ask("b"))
        told.update(both[0] + both[1])
        expect(set(told) <= {200, 409, 503}, f"The answers were {dict(told)}.")
        expect(told[200] >= 20, f"Only {told[200]} were answered.")
        await _until_one_engine(running)
        return f"the answers were {dict(told)}, and one engine is left"


@proves("Clients that ask, poll, load and unload at the same time leave all in order.",
        is_alone=True)  # fmt: skip
async def all_is_asked_at_once(folder: Path) -> str:
    async with studio(folder, {"a": {}, "b": {}}) as running:
        answers: Counter[int] = Counter()
        loads: Counter[int] = Counter()
        polls: list[float] = []
        await _ask_in_turn(running, answers, rounds=5)
        before = running.resident_bytes()
        await asyncio.gather(
            _ask_in_turn(running, answers, rounds=40),
            _ask_in_turn(running, answers, rounds=40),
            _load_and_unload(running, loads, rounds=15),
            _poll(running, polls, rounds=150),
        )
        expect(set(answers) <= {200, 409, 503}, f"The answers were {dict(answers)}.")
        expect(set(loads) <= {200, 409, 499}, f"The loads were answered with {dict(loads)}.")
        grown = running.resident_bytes() - before
        expect(grown < 20 * 2**20, f"The server grew by {grown >> 20} MiB.")
        slow = max(polls)
        expect(slow < 2, f"/health once took {slow:.2f} s.")
        for model in ("a", "b"):
            await running.unload(model)
        expect(not running.alive(), "Processes are left.")
        return f"answers {dict(answers)}, loads {dict(loads)}; /health in {slow:.2f} s at most"


async def _ask_in_turn(running: Studio, told: Counter[int], *, rounds: int) -> None:
    for number in range(rounds):
        reply = await running.chat("ab"[number % 2])
        expect(reply.status == 200 or reply.code, f"An answer of {reply.status} has no code.")
        told[reply.status] += 1


async def _load_and_unload(running: Studio, told: Counter[int], *, rounds: int) -> None:
    for _ in range(rounds):
        told[(await running.load("a", max_seq_length=2048)).status] += 1
        told[(await running.unload("a")).status] += 1


async def _poll(running: Studio, seconds: list[float], *, rounds: int) -> None:
    for _ in range(rounds):
        await running.status()
        seconds.append((await running.get("/health")).require(200).seconds)
