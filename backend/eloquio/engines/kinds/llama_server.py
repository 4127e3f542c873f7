"""llama-server: what it is started with, what it says it did, what it can do without."""

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path

from eloquio.engines import exits
from eloquio.engines.address import Address
from eloquio.engines.devices import processor_cores
from eloquio.engines.facts import Facts
from eloquio.engines.kinds import llama_binary
from eloquio.engines.kinds.blame import Blame, blamed
from eloquio.engines.kinds.kind import Start, key_file
from eloquio.engines.kinds.llama_binary import Binary, FlagReader
from eloquio.engines.spec import DEFAULT_SLOTS, EngineSpec, batch_tokens
from eloquio.errors import EloquioError, EngineFlagUnknown
from eloquio.settings import Settings

_PING_SECONDS = 10
# What every build of these years writes of the layers it put on accelerators.
_OFFLOADED = re.compile(r"offloaded (\d+)/(\d+) layers to GPU")

Option = tuple[str, ...]


class LlamaServer:
    """A `Kind`: a llama-server for one model."""

    def __init__(self, spec: EngineSpec, settings: Settings, flag_reader: FlagReader) -> None:
        self._spec = spec
        self._settings = settings
        self._flag_reader = flag_reader
        self._options: list[Option] = []
        self._flags: frozenset[str] = frozenset()

    async def prepare(self, address: Address, files: Path, without: frozenset[Blame]) -> Start:
        binary = await asyncio.to_thread(llama_binary.locate, self._settings)
        self._flags = await self._flag_reader.flags(binary)
        self._options = await asyncio.to_thread(
            options, self._spec, self._flags, address, files, without
        )
        return Start(
            command(self._spec, binary, self._options),
            llama_binary.environment(binary, os.environ),
        )

    def folders(self) -> Sequence[Path]:
        return [self._spec.model_path.parent]

    def blamed(self, status: int, lines: Sequence[str]) -> Blame | None:
        blame = blamed(lines, status, self._options)
        can_go_without = blame is not None and can_do_without(self._spec, blame, self._flags)
        return blame if can_go_without else None

    def start_failure(self, status: int, lines: Sequence[str]) -> EloquioError:
        return exits.start_failure(status, lines)

    def differences(
        self, facts: Facts, lines: Sequence[str], without: frozenset[Blame]
    ) -> list[str]:
        return differences(self._spec, facts, lines, without)


def options(
    spec: EngineSpec,
    flags: frozenset[str],
    address: Address,
    files: Path,
    without: frozenset[Blame] = frozenset(),
) -> list[Option]:
    """The command line's options. The files that they name are written: `files` and an ending.

    An option of ours that this binary doesn't know is left out, as is what it failed on before;
    one that a person asked for is an error. Recommended sampling is given here, so that a request's
    bytes need no change.
    """
    left_out = {blame.option for blame in without if blame.part == "option"}
    ours = [option for option in _ours(spec) if option[0] in flags and option[0] not in left_out]
    asked = _asked(spec, files)
    for option in asked:
        if option[0] not in flags:
            raise EngineFlagUnknown(f"This llama-server doesn't know the option {option[0]}.")
    parts = {blame.part for blame in without}
    if spec.projector_path and "projector" not in parts:
        asked.append(("--mmproj", str(spec.projector_path)))
    if "flash_attention" in parts:
        ours.append(("--flash-attn", "off"))
    model = ("--model", str(spec.model_path))
    return [model, ("--alias", spec.model), *_listening(address, files), *ours, *asked]


def command(spec: EngineSpec, binary: Binary, options: Sequence[Option]) -> list[str]:
    return [str(binary.path), *(word for o in options for word in o), *spec.options.extra_args]


def can_do_without(spec: EngineSpec, blame: Blame, flags: frozenset[str]) -> bool:
    """Whether it may be started without what it failed on: nothing that a person asked for."""
    match blame.part:
        case "projector":
            return spec.projector_path is not None
        case "flash_attention":
            # A cache in whole blocks needs it.
            needs_it = spec.options.cache_type_kv not in (None, "f16", "bf16", "f32")
            return "--flash-attn" in flags and not needs_it
        case "option":
            return blame.option in {option[0] for option in _ours(spec)}


def concession(blame: Blame) -> str:
    """What a person should know of an engine that runs without what it failed on."""
    match blame.part:
        case "projector":
            return "The engine failed on the model's projector: without it, it can't see pictures."
        case "flash_attention":
            return "The engine failed with flash attention: it runs without, slower on long texts."
        case "option":
            return f"The engine refused its option {blame.option}: it runs without."


def _ours(spec: EngineSpec) -> list[Option]:
    found: list[Option] = [
        ("--jinja",),
        ("--metrics",),
        ("--slots",),
        ("--no-ui",),
        ("--offline",),
        ("--log-colors", "off"),
        ("--cors-origins", "localhost"),
        ("--sse-ping-interval", str(_PING_SECONDS)),
        *_sampling(spec),
    ]
    if spec.task != "chat":
        found.append(("--no-kv-unified",))
    if spec.memory.device == "cpu":
        found += _threads(processor_cores())
    if spec.memory.device == "cpu" and not spec.reads_whole:
        found += _batches(batch_tokens("cpu"))
    return found


def _batches(tokens: int) -> list[Option]:
    return [("--batch-size", str(tokens)), ("--ubatch-size", str(tokens))]


def _threads(cores: int) -> list[Option]:
    """Writing an answer leaves a core to the page, the backend and whoever else is at work.

    Its threads wait for each other at every layer: one that has to share its core holds up all.
    """
    return [("--threads", str(max(1, cores - 1))), ("--threads-batch", str(cores))]


def _listening(address: Address, files: Path) -> list[Option]:
    if address.socket_path is not None:
        return [("--host", str(address.socket_path))]
    port = ("--port", str(address.port))
    return [("--host", "127.0.0.1"), port, ("--api-key-file", str(key_file(address, files)))]


def _sampling(spec: EngineSpec) -> list[Option]:
    values = {
        "--temperature": spec.sampling.temperature,
        "--top-p": spec.sampling.top_p,
        "--top-k": spec.sampling.top_k,
        "--min-p": spec.sampling.min_p,
        "--repeat-penalty": spec.sampling.repetition_penalty,
        "--presence-penalty": spec.sampling.presence_penalty,
    }
    return [(flag, f"{value:g}") for flag, value in values.items() if value is not None]


def _writing(spec: EngineSpec) -> list[Option]:
    found: list[Option] = []
    if spec.context_length:
        found.append(("--ctx-size", str(spec.context_length)))
    if spec.options.n_parallel:
        # Without the unified cache each slot would get only its share of the context.
        found += [("--parallel", str(spec.options.n_parallel)), ("--kv-unified",)]
    return found


def _reading(spec: EngineSpec) -> list[Option]:
    """Of a list of texts each slot reads another, with a context of its own."""
    slots = spec.options.n_parallel or DEFAULT_SLOTS
    found: list[Option] = [
        ("--reranking",) if spec.task == "rerank" else ("--embedding",),
        ("--ctx-size", str(spec.context_length * slots)),
        ("--parallel", str(slots)),
    ]
    if spec.pooling is not None:
        found.append(("--pooling", spec.pooling))
    if spec.reads_whole:
        found += _batches(spec.context_length)
    return found


def _asked(spec: EngineSpec, files: Path) -> list[Option]:
    options = spec.options
    asked = _writing(spec) if spec.task == "chat" else _reading(spec)
    if options.cache_type_kv:
        asked += [
            ("--cache-type-k", options.cache_type_kv),
            ("--cache-type-v", options.cache_type_kv),
        ]
    if options.gpu_layers is not None:
        asked += [("--gpu-layers", str(options.gpu_layers)), ("--fit", "off")]
    else:
        asked.append(("--fit", "on"))
    if options.n_cpu_moe:
        asked.append(("--n-cpu-moe", str(options.n_cpu_moe)))
    if options.tensor_split:
        asked.append(("--tensor-split", ",".join(f"{part:g}" for part in options.tensor_split)))
    if options.chat_template:
        template = files.with_suffix(".jinja")
        template.write_text(options.chat_template)
        asked.append(("--chat-template-file", str(template)))
    if options.draft_model:
        asked.append(("--model-draft", str(options.draft_model)))
    if options.lora_adapters:
        asked.append(("--lora", ",".join(str(adapter) for adapter in options.lora_adapters)))
    if options.rpc_servers:
        asked.append(("--rpc", ",".join(options.rpc_servers)))
    return asked


def differences(
    spec: EngineSpec, seen: Facts, lines: Sequence[str], without: frozenset[Blame] = frozenset()
) -> list[str]:
    """What the engine made of what was asked, where that isn't the same: sentences for a person.

    `lines` are what it wrote while it started, `without` what it was started without.
    """
    found = sorted(concession(blame) for blame in without)
    asked = spec.context_length
    if asked and seen.context_length < asked:
        found.append(
            f"The engine made a context of {seen.context_length} tokens instead of {asked}."
        )
    has_projector = spec.projector_path and all(blame.part != "projector" for blame in without)
    if has_projector and not seen.is_vision and not seen.has_audio_input:
        found.append("The engine didn't take the model's picture projector: it can't see pictures.")
    if spec.task == "chat" and not seen.chat_template:
        found.append("The model brings no chat template: the engine uses a general one.")
    if spec.memory.device != "cpu":
        found += _left_to_the_processor(spec, lines)
    return found


def _left_to_the_processor(spec: EngineSpec, lines: Sequence[str]) -> list[str]:
    told = [match for line in lines if (match := _OFFLOADED.search(line))]
    if not told:
        return []
    taken, layers = int(told[-1][1]), int(told[-1][2])
    wanted = layers if spec.options.gpu_layers is None else min(spec.options.gpu_layers, layers)
    if taken >= wanted:
        return []
    if taken == 0:
        return [f"The model runs on the processor alone: {spec.memory.device} took none of it."]
    return [f"{spec.memory.device} took {taken} of {layers} layers: the processor runs the rest."]
