"""Why an engine couldn't start, by the lines it wrote: a table from its words to an error of ours.

The patterns are what llama.cpp's builds from 2024 to 2026, the system's loaders and the GPUs'
drivers write. The first cause that is found decides: from those that name a part of the load down
to those that only say that it failed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eloquio.errors import (
    AdapterOutOfMemory,
    AdapterRefused,
    ComputeOutOfMemory,
    ContextOutOfMemory,
    DraftOutOfMemory,
    DraftRefused,
    EngineArchitectureUnknown,
    EngineFileLost,
    EngineFileTruncated,
    EngineFlagUnknown,
    EngineLibraryMissing,
    EngineNotRunnable,
    EngineOptionRefused,
    EngineOutOfMemory,
    EngineRefusedFile,
    EngineSocketFailed,
    EngineStartFailed,
    EngineTemplateInvalid,
    GpuUnusable,
    ProjectorOutOfMemory,
    ProjectorRefused,
    QuantUnsupported,
    RpcServerFailed,
)


@dataclass(frozen=True)
class Cause:
    """`{0}` in the sentence is what the pattern's first group that took part has found.

    Of a cause with a `part`, that has to be found too: what it tells is whose memory ran out.
    """

    error: type[EngineStartFailed]
    sentence: str
    pattern: re.Pattern[str]
    part: re.Pattern[str] | None = None

    def is_told_by(self, line: str) -> bool:
        by_part = self.part is not None and self.part.search(line)
        return bool(by_part or self.pattern.search(line))

    def sentence_of(self, match: re.Match[str]) -> str:
        return self.sentence.format(next((group for group in match.groups() if group), ""))


def cause_of(lines: Sequence[str]) -> tuple[Cause, re.Match[str]] | None:
    """The first cause of the table that `lines` tell of, and where it was found."""
    for cause in _CAUSES:
        if cause.part is not None and not _first(cause.part, lines):
            continue
        if match := _first(cause.pattern, lines):
            return cause, match
    return None


def ran_out_of_memory(lines: Sequence[str]) -> bool:
    return _first(_OUT_OF_MEMORY, lines) is not None


def lost_its_gpu(lines: Sequence[str]) -> bool:
    return _first(_GPU, lines) is not None


def _first(pattern: re.Pattern[str], lines: Sequence[str]) -> re.Match[str] | None:
    matches = (pattern.search(line) for line in lines)
    return next((match for match in matches if match), None)


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_OUT_OF_MEMORY = _words(
    r"out of (?:device |host )?memory",
    r"OutOf(?:Device|Host)?Memory|OUT_OF_(?:DEVICE|HOST)_MEMORY|OUT_OF_RESOURCES",
    r"insufficient memory|insufficient (?:system )?resources exist|paging file is too small",
    r"bad_alloc|cannot allocate memory|not enough (?:memory|space)",
    r"(?:(?:unable|failed) to|can't) allocate\b",
    r"(?:device )?memory allocation of size \d+ failed|cudaMalloc failed|cuMemCreate",
)
_GPU = _words(
    r"failed to initialize (?:the Metal library|\w+ backend)\b",
    r"(?:CUDA|ROCm|MUSA) error: (?!out of memory)(.+)",
    r"driver version is insufficient|unsupported display driver|no kernel image is available",
    r"has no device code compatible with CUDA arch",
    r"DEVICE_LOST|ErrorDeviceLost|device lost|ErrorInitializationFailed|ErrorIncompatibleDriver",
    r"found no (?:NVIDIA|usable) driver|invalid device(?: ordinal| function)|no such device: (\S+)",
)
_KV = r"(?:kv|rs)[ _]cache"

_CAUSES: tuple[Cause, ...] = (
    # Before it ran -------------------------------------------------------------------------------
    Cause(
        EngineLibraryMissing,
        "The engine was built for a newer system: {0} is missing here.",
        _words(r"version `([\w.]+)' not found"),
    ),
    Cause(
        EngineLibraryMissing,
        "The engine needs a shared library that isn't there: {0}.",
        _words(
            r"error while loading shared libraries: ([^\s:]+)",
            r"Library not loaded: (\S+)",
            r"([\w.-]{1,100}\.dll) (?:was|is) (?:not found|missing)",
        ),
    ),
    Cause(
        EngineLibraryMissing,
        "A shared library of the engine's is of another version: it lacks {0}.",
        _words(
            r"undefined symbol: (\S+?),?(?:\s|$)",
            r"Symbol not found: (\S+)",
            r"procedure entry point (\S+)",
        ),
    ),
    Cause(
        EngineLibraryMissing,
        "The engine found none of its own libraries to compute with.",
        _words(r"no backends are loaded"),
    ),
    Cause(
        EngineNotRunnable,
        "The engine's program can't be run: {0}.",
        _words(r"(exec format error|bad CPU type in executable|is not a valid Win32 application)"),
    ),
    # Its command line ----------------------------------------------------------------------------
    Cause(
        EngineFlagUnknown,
        "The engine doesn't know the option {0}.",
        _words(r"(?:invalid|unknown) argument: (\S+)", r"unrecognized option:? '?([^\s']+)"),
    ),
    Cause(
        EngineOptionRefused,
        "The engine refused the value of the option {0}.",
        _words(r"error while handling argument \"([^\"]+)\""),
    ),
    Cause(
        EngineOptionRefused,
        "A KV cache of a quantized type needs flash attention, which is off for this load.",
        _words(
            r"(?:quantized V cache|V cache quantization).{0,40}requires flash.?att",
            r"quantized V cache was requested, but this requires Flash Attention",
        ),
    ),
    Cause(
        EngineOptionRefused,
        "The type of the KV cache doesn't suit this model.",
        _words(
            r"cache type \S+ with block size \d+ does not divide",
            r"does not support different K \(.*\) and V",
        ),
    ),
    Cause(
        EngineTemplateInvalid,
        "The engine can't use the chat template.",
        _words(
            r"supplied chat template is not supported",
            r"chat template.{0,20} parsing error",
            r"fail\w* to (?:parse|initialize|apply) (?:the )?(?:chat )?template",
            r"(?:invalid|unsupported) chat.template",
        ),
    ),
    # A part of the load --------------------------------------------------------------------------
    Cause(
        DraftOutOfMemory,
        "There isn't enough memory for the draft model.",
        _OUT_OF_MEMORY,
        part=_words(r"failed to (?:load|create|init\w*) (?:the )?(?:draft|speculative|MTP)"),
    ),
    Cause(
        ProjectorOutOfMemory,
        "There isn't enough memory for what lets the model see pictures or hear sound.",
        _OUT_OF_MEMORY,
        part=_words(
            r"failed to load multimodal model|mtmd_init_from_file: error|clip_init: failed",
            r"clip_model_load(?:er)?.*(?:fail|error|allocate)|clip\.cpp:\d+: GGML_ASSERT",
        ),
    ),
    Cause(
        AdapterOutOfMemory,
        "There isn't enough memory for the adapter.",
        _words(r"failed to allocate buffer for lora adapter"),
    ),
    Cause(
        ContextOutOfMemory,
        "There isn't enough memory for the context.",
        _words(
            rf"failed to allocate buffer for {_KV}",
            rf"llama_{_KV}\w*(?:\(\))? ?:? ?failed",
            rf"{_KV}.{{0,30}}(?:failed|unable) to allocate",
        ),
    ),
    Cause(
        AdapterRefused,
        "The adapter doesn't belong to this model.",
        _words(
            r"LoRA arch mismatch|maybe wrong base model|control vector n_embd does not match",
            r"LoRA tensor .* (?:does not exist in base model|has unexpected suffix)",
        ),
    ),
    Cause(
        AdapterRefused,
        "The engine couldn't read the adapter.",
        _words(r"failed to (?:load|apply) (?:the )?lora"),
    ),
    Cause(
        DraftRefused,
        "The draft model doesn't fit this model.",
        _words(
            r"draft model (?:vocab|number of sequences|is not)",
            r"draft model.{0,40}(?:must match|not compatible|incompatible)",
            r"failed to initialize speculative decoding context",
        ),
    ),
    Cause(
        DraftRefused,
        "The engine couldn't read the draft model.",
        _words(r"failed to load (?:the )?draft"),
    ),
    Cause(
        ProjectorRefused,
        "The projector, which lets the model see or hear, is of another model.",
        _words(
            r"mismatch between (?:text model|vision and audio|\w+ model).{0,40}mmproj",
            r"using (?:the )?wrong mmproj|multimodal projector .* is not equal to that of",
        ),
    ),
    Cause(
        ProjectorRefused,
        "The engine couldn't read the projector, which lets the model see or hear.",
        _words(
            r"failed to load multimodal model|mtmd_init_from_file: error|clip_init: failed",
            r"unknown projector type",
        ),
    ),
    Cause(
        RpcServerFailed,
        "A machine named in rpc_servers doesn't answer as the engine needs it.",
        _words(r"RPC server (?:version mismatch|crashed)|RPC (?:handshake|transport) .*failed"),
    ),
    # The model and the machine -------------------------------------------------------------------
    Cause(
        EngineArchitectureUnknown,
        "The engine doesn't know the architecture {0}.",
        _words(r"(?:unknown|unsupported) (?:model )?architecture:? '?([\w.-]+)"),
    ),
    Cause(
        QuantUnsupported,
        "The engine doesn't know the type of the tensor {0}.",
        _words(
            r"tensor '([^']+)' has invalid ggml type",
            r"tensor '([^']+)' of type \d+ \([^)]*REMOVED",
            r"unsupported tensor type(?: for dequantization)?:? (\S+)",
        ),
    ),
    Cause(
        QuantUnsupported,
        "The file is of a newer version of its format than the engine reads.",
        _words(r"only supports up to version|unsupported (?:GGUF|file) version"),
    ),
    Cause(
        EngineOutOfMemory,
        "There isn't enough memory for the model.",
        _words(r"unable to allocate (?:\S+ |backend )?buffer"),
    ),
    Cause(
        EngineOutOfMemory,
        "There isn't enough memory for the model.",
        _words(r"(?:mmap|MapViewOfFile|CreateFileMappingA?) failed"),
        part=_OUT_OF_MEMORY,
    ),
    Cause(
        ComputeOutOfMemory,
        "There isn't enough memory for what the model computes in.",
        _OUT_OF_MEMORY,
        part=_words(
            r"failed to allocate (?:compute|output|graph)",
            r"gallocr_reserve\w*: failed to allocate",
            r"command buffer \d+ failed with status 5|warming up the model",
        ),
    ),
    Cause(GpuUnusable, "The engine can't use the GPU.", _GPU),
    Cause(EngineOutOfMemory, "There isn't enough memory for the model.", _OUT_OF_MEMORY),
    Cause(
        EngineSocketFailed,
        "The engine couldn't open its socket.",
        _words(
            r"(?:couldn't|could not|failed to|can't) (?:bind|listen)",
            r"address already in use|exiting due to HTTP server error",
            r"couldn't start HTTP listener|failed to initialize HTTP server",
        ),
    ),
    Cause(
        EngineFileTruncated,
        "The model's file ends too early.",
        _words(
            r"not within the file bounds|unexpectedly reached end of (?:file|buffer)",
            r"failed to read (?:magic|key-value pairs|tensor (?:info|data)|header)",
            r"corrupted model: \d+ tensors expected",
        ),
    ),
    Cause(
        EngineFileLost,
        "The engine couldn't open the model's file: {0}.",
        _words(
            r"failed to open .*[(:] ?(No such file|Permission denied|Input/output error)",
            r"read error: (Input/output error|Stale file handle|No such device)",
        ),
    ),
    Cause(
        EngineRefusedFile,
        "The file is a projector, which a model is loaded with, and no model.",
        _words(r"CLIP cannot be used as main model"),
    ),
    Cause(
        EngineRefusedFile,
        "The engine couldn't read the model's file.",
        _words(
            r"invalid magic|corrupted or incomplete|corrupted model|invalid model:",
            r"missing tensor|tensor '[^']+' (?:not found|has (?:wrong shape|invalid data))",
            r"wrong number of tensors|invalid split|illegal split|key not found in model",
            r"error loading model|(?:failed|unable) to load model",
        ),
    ),
    # By itself no reason to end, since there is the processor; so the last to be thought of.
    Cause(
        GpuUnusable, "The engine can't use the GPU.", _words(r"failed to initialize (?:CUDA|ROCm)")
    ),
)
