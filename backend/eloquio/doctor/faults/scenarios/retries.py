"""Starts that fail on a part that can be left out: tried again without it, and said."""

from pathlib import Path

from eloquio.doctor.faults import gguf_file
from eloquio.doctor.faults.scenario import expect, proves
from eloquio.doctor.faults.serving import studio
from eloquio.doctor.faults.studio import Reply


def _warnings(reply: Reply) -> str:
    """What the load warns of; Broken if of nothing."""
    warnings = reply.require(200).body["warnings"]
    expect(warnings, "The load left something out and warns of nothing.")
    return " ".join(warnings)


@proves("A model whose projector fails is loaded without it, and the load says so.")
async def fails_on_its_projector(folder: Path) -> str:
    line = "clip_model_loader: failed to load mmproj: unknown projector type"
    async with studio(folder, {"a": {"fails_with": ["--mmproj", line]}}) as running:
        gguf_file.write_projector(running.shelf / "mmproj-a.gguf")
        reply = await running.load("a")
        warnings = _warnings(reply)
        expect(reply.body["is_vision"] is False, "It says that it sees pictures.")
        (await running.chat("a")).require(200)
        return f"loaded with is_vision false: {warnings}"


@proves("A projector that works is used.")
async def has_a_projector(folder: Path) -> str:
    async with studio(folder, {"a": {}}) as running:
        gguf_file.write_projector(running.shelf / "mmproj-a.gguf")
        reply = (await running.load("a")).require(200)
        expect(reply.body["is_vision"] is True, "The model was loaded without its projector.")
        expect(running.starts("a") == 1, "It was started more than once.")
        return "is_vision is true, in one start"


@proves("A start that fails on flash attention is tried again without, and the load says so.")
async def fails_on_flash_attention(folder: Path) -> str:
    line = "error: flash attention is not supported by this backend: failed to create context"
    behaviour = {"fails_without": ["--flash-attn off", line]}
    async with studio(folder, {"a": behaviour}) as running:
        return f"loaded: {_warnings(await running.load('a'))}"


@proves("An option of ours that the engine refuses is left out, and the load says so.")
async def refuses_an_option(folder: Path) -> str:
    behaviour = {"fails_with": ["--log-colors", "error: invalid argument: --log-colors"]}
    async with studio(folder, {"a": behaviour}) as running:
        return f"loaded: {_warnings(await running.load('a'))}"


@proves("An option that the person asked for is never left out: the load fails and names it.")
async def refuses_the_persons_option(folder: Path) -> str:
    behaviour = {"fails_with": ["--rope-scaling", "error: invalid argument: --rope-scaling"]}
    async with studio(folder, {"a": behaviour}) as running:
        reply = await running.load("a", extra_args=["--rope-scaling", "yarn"])
        reply.require(502).says("--rope-scaling")
        expect(running.starts("a") == 1, "It was started again without what was asked for.")
        return "refused by its name, after one start"


@proves("A fault that nothing can be left out for is not tried again and again.")
async def fails_for_good(folder: Path) -> str:
    async with studio(
        folder, {"a": {"says": ["error: failed to load model"], "exits": 1}}
    ) as running:
        (await running.load("a")).require(502)
        expect(running.starts("a") == 1, f"It was started {running.starts('a')} times.")
        return "one start, one answer"


@proves("A smaller context than was asked for is said, never silent.")
async def makes_a_smaller_context(folder: Path) -> str:
    async with studio(folder, {"a": {"context": 1024}}) as running:
        warnings = _warnings(await running.load("a", max_seq_length=4096))
        expect("1024" in warnings and "4096" in warnings, f"The warning says: {warnings}")
        return warnings
