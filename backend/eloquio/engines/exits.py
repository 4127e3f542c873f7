"""Why an engine ended: its exit status, its signal and its last lines, made an error of ours.

The patterns are what llama.cpp's builds of 2025 and 2026 and the system's loader write; the first
that matches, from the cause nearest to the person down to the most general, decides.
"""

import re
import signal
from collections.abc import Sequence

from eloquio.errors import (
    EloquioError,
    EngineArchitectureUnknown,
    EngineCrashed,
    EngineFlagUnknown,
    EngineIllegalInstruction,
    EngineKilled,
    EngineLibraryMissing,
    EngineOutOfMemory,
    EngineRefusedFile,
    EngineSocketFailed,
    EngineStartFailed,
    EngineTemplateInvalid,
)

_EVIDENCE_LINES = 6
_UNTELLING = re.compile(r"^#\d+ |^\[New LWP|listening on")

_CAUSES: tuple[tuple[re.Pattern[str], type[EngineStartFailed], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), error, sentence)
    for pattern, error, sentence in (
        (
            r"error while loading shared libraries: (\S+?):|Library not loaded: (\S+)",
            EngineLibraryMissing,
            "The engine needs a shared library that isn't there: {0}.",
        ),
        (
            r"unknown model architecture: '?([\w.-]+)|unknown architecture:? '?([\w.-]+)",
            EngineArchitectureUnknown,
            "The engine doesn't know the architecture {0}.",
        ),
        (
            r"(?:invalid|unknown) argument:? (\S+)|error while handling argument \"(\S+)\"",
            EngineFlagUnknown,
            "The engine refused the option {0}.",
        ),
        (
            r"failed to allocate buffer for kv cache|kv.cache.*(?:failed|unable) to allocate",
            EngineOutOfMemory,
            "There isn't enough memory for the context.",
        ),
        (
            r"(?:mmproj|clip|mtmd|projector).*(?:out of memory|failed to allocate)",
            EngineOutOfMemory,
            "There isn't enough memory for the model's picture projector.",
        ),
        (
            r"out of memory|OutOfDeviceMemory|OutOfHostMemory|insufficient memory|bad_alloc"
            r"|(?:unable|failed) to allocate|cudaMalloc failed",
            EngineOutOfMemory,
            "There isn't enough memory for the model.",
        ),
        (
            r"(?:parse|parsing|invalid|supplied).{0,40}chat template|chat template.{0,60}"
            r"(?:error|failed|not supported|invalid)",
            EngineTemplateInvalid,
            "The engine can't read the chat template.",
        ),
        (
            r"couldn't bind|could not bind|address already in use|failed to (?:bind|listen)",
            EngineSocketFailed,
            "The engine couldn't open its socket.",
        ),
        (
            r"not within the file bounds|corrupted or incomplete|invalid magic|failed to read"
            r"|missing tensor|tensor '[^']+' (?:not found|has wrong shape)|wrong number of tensors"
            r"|failed to load (?:model|multimodal|lora|draft)"
            r"|(?:error|unable).{0,4} load(?:ing)? model",
            EngineRefusedFile,
            "The engine couldn't read the model's file.",
        ),
    )
)


def start_failure(status: int, lines: Sequence[str]) -> EngineStartFailed:
    """The error of an engine that ended with `status` (negative: a signal) while starting."""
    evidence = last_words(status, lines)
    # What the system did to it says more than what it had written before.
    match -status:
        case signal.SIGILL:
            return EngineIllegalInstruction(
                "The engine used an instruction that this processor doesn't have.",
                evidence=evidence,
            )
        case signal.SIGKILL:
            return EngineKilled("The engine was killed while it was starting.", evidence=evidence)
    text = "\n".join(lines)
    for pattern, error, sentence in _CAUSES:
        if match := pattern.search(text):
            detail = next((group for group in match.groups() if group), "")
            return error(without_paths(sentence.format(detail)), evidence=evidence)
    return EngineStartFailed(
        f"The engine ended while it was starting ({ending(status)}).", evidence=evidence
    )


def crash(status: int, lines: Sequence[str]) -> EloquioError:
    """The error of an engine that ended with `status` while it was serving."""
    evidence = last_words(status, lines)
    if re.search(r"out of memory|OutOfDeviceMemory|bad_alloc", "\n".join(lines[-40:]), re.I):
        return EngineCrashed(
            f"The engine ran out of memory while it was answering ({ending(status)}).",
            evidence=evidence,
            next_step="Load the model with a shorter context or fewer slots.",
        )
    return EngineCrashed(
        f"The engine ended while it was serving ({ending(status)}).", evidence=evidence
    )


def ending(status: int) -> str:
    """`exit status 1`, `signal SIGSEGV`, or a Windows status in hexadecimal."""
    if status < 0:
        try:
            return f"signal {signal.Signals(-status).name}"
        except ValueError:
            return f"signal {-status}"
    return f"exit status {status if status < 256 else f'0x{status:08X}'}"


def last_words(status: int, lines: Sequence[str]) -> str:
    """The end of the engine's log without absolute paths, and how it ended."""
    return "\n".join(filter(None, [last_lines(lines), ending(status)]))


def last_lines(lines: Sequence[str]) -> str:
    """The last lines that tell a person something: no stack frames, no addresses."""
    telling = [line for line in lines if not _UNTELLING.search(line)]
    return without_paths("\n".join(telling[-_EVIDENCE_LINES:]))


_ABSOLUTE_PATH = re.compile(
    r"(?<![\w/\\.])(?<!:/)(?:[A-Za-z]:)?[\\/](?:[^\s'\"\\/]+[\\/])+([^\s'\"\\/]*)"
)


def without_paths(text: str) -> str:
    """`text` with each absolute path cut down to its last name; addresses stay whole."""
    return _ABSOLUTE_PATH.sub(r"\1", text)
