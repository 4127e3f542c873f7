"""Why an engine ended: its exit status, its signal and its last lines, made an error of ours."""

import re
import signal
from collections.abc import Sequence

from eloquio.engines.causes import Cause, cause_of, lost_its_gpu, ran_out_of_memory
from eloquio.engines.words import is_stack_frame, may_be_fatal, plain, tells_failure
from eloquio.errors import (
    EloquioError,
    EngineAborted,
    EngineCrashed,
    EngineFileLost,
    EngineIllegalInstruction,
    EngineKilled,
    EngineLibraryMissing,
    EngineNotRunnable,
    EngineStartFailed,
)

_EVIDENCE_LINES = 6
# Of a crash in service, the lines that can still be about it.
_CRASH_LINES = 40

# By name, since Windows lacks them; the numbers are Linux's.
_SIGHUP, _SIGTRAP, _SIGBUS, _SIGKILL = (
    getattr(signal, name, number)
    for name, number in (("SIGHUP", 1), ("SIGTRAP", 5), ("SIGBUS", 7), ("SIGKILL", 9))
)
_CRASH_SIGNALS = {signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, _SIGTRAP, _SIGBUS}
_END_SIGNALS = {signal.SIGTERM, signal.SIGINT, _SIGHUP}
# Windows ends a program with one of these instead.
_WINDOWS_SIGNALS = {
    0xC0000005: signal.SIGSEGV,  # access violation
    0xC00000FD: signal.SIGSEGV,  # stack overflow
    0xC0000374: signal.SIGSEGV,  # damaged heap
    0xC0000409: signal.SIGABRT,  # abort, or a stack that was overrun
    0xC0000094: signal.SIGFPE,  # division by zero
    0xC0000006: _SIGBUS,  # a mapped file that can't be read
    0xC000001D: signal.SIGILL,
    0xC000013A: signal.SIGINT,
}
_WINDOWS_LIBRARY_MISSING = {0xC0000135, 0xC0000139, 0xC0000138}
# As shells and our own launcher say of a program that can't be run, or isn't there.
_CANNOT_RUN = {126, 127}


def start_failure(status: int, lines: Sequence[str]) -> EngineStartFailed:
    """The error of an engine that ended with `status` (negative: a signal) while starting."""
    number = _signal_of(status)
    # What the system did to it says more than what it had written before.
    if by_the_system := _system_failure(status, number, lines):
        return by_the_system
    if found := cause_of([line for line in lines if may_be_fatal(line)]):
        cause, match = found
        return cause.error(
            without_paths(cause.sentence_of(match)), evidence=last_words(status, lines, cause)
        )
    evidence = last_words(status, lines)
    if number == _SIGBUS:
        return EngineFileLost("The model's file was changed while it was read.", evidence=evidence)
    if number in _CRASH_SIGNALS:
        return EngineAborted(
            f"The engine met a fault of its own while it was starting ({ending(status)}).",
            evidence=evidence,
        )
    if status in _CANNOT_RUN:
        return EngineNotRunnable("The engine's program can't be run.", evidence=evidence)
    return EngineStartFailed(
        f"The engine ended while it was starting ({ending(status)}).", evidence=evidence
    )


def _system_failure(
    status: int, number: int | None, lines: Sequence[str]
) -> EngineStartFailed | None:
    evidence = last_words(status, lines)
    if status & 0xFFFFFFFF in _WINDOWS_LIBRARY_MISSING:
        return EngineLibraryMissing(
            "The engine needs a shared library that isn't there.", evidence=evidence
        )
    if number == signal.SIGILL:
        return EngineIllegalInstruction(
            "The engine used an instruction that this processor doesn't have.", evidence=evidence
        )
    if number == _SIGKILL:
        return EngineKilled("The engine was killed while it was starting.", evidence=evidence)
    if number in _END_SIGNALS:
        return EngineKilled(
            f"The engine was told to end while it was starting ({ending(status)}).",
            evidence=evidence,
            next_step="Something on this machine ended it; load the model again.",
        )
    return None


def crash(status: int, lines: Sequence[str]) -> EloquioError:
    """The error of an engine that ended with `status` while it was serving."""
    number, told = _signal_of(status), [line for line in lines if may_be_fatal(line)]
    what, next_step = "The engine ended while it was serving", None
    if number == _SIGKILL:
        what = "The engine was killed from outside while it was serving"
        next_step = (
            "The system may have run out of memory: choose a smaller model or context, or send the"
            " request again."
        )
    elif ran_out_of_memory(told[-_CRASH_LINES:]):
        what = "The engine ran out of memory while it was answering"
        next_step = "Load the model with a shorter context or fewer slots."
    elif number == _SIGBUS:
        what = "The model's file was changed, or its disk failed, while the engine was serving"
        next_step = "Check that nothing changes the file and that its disk is sound; load it again."
    elif lost_its_gpu(told[-_CRASH_LINES:]):
        what = "The GPU failed while the engine was serving"
        next_step = "Send the request again; if it stays so, update the GPU's driver."
    return EngineCrashed(
        f"{what} ({ending(status)}).", evidence=last_words(status, lines), next_step=next_step
    )


def is_crash(status: int) -> bool:
    """An end by a fault of its own; SIGKILL is the system's doing, and SIGILL the build's."""
    return _signal_of(status) in _CRASH_SIGNALS


def _signal_of(status: int) -> int | None:
    """The signal that ended it, also as a shell passes one on, and as Windows has it."""
    if status & 0xFFFFFFFF in _WINDOWS_SIGNALS:
        return _WINDOWS_SIGNALS[status & 0xFFFFFFFF]
    if status < 0:
        return -status
    return status - 128 if 128 < status < 128 + 65 else None


def tells_why(lines: Sequence[str]) -> bool:
    """Whether any of an engine's lines tells of a failure."""
    return any(tells_failure(line) for line in lines)


def ending(status: int) -> str:
    """`exit status 1`, `signal SIGSEGV`, or a Windows status in hexadecimal."""
    if status & 0xFFFFFFFF >= 0xC0000000 and not -128 <= status < 0:
        return f"exit status 0x{status & 0xFFFFFFFF:08X}"
    if status < 0:
        return f"signal {_name_of(-status)}"
    number = _signal_of(status)
    return f"exit status {status}" + (f", signal {_name_of(number)}" if number else "")


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


# The engine's own words --------------------------------------------------------------------------

# These only follow from what was said before.
_CONSEQUENCE = re.compile(
    r"load_from_file\w*: failed to load model$|common_init\w*: failed to (?:load model|create cont)"
    r"|load_model: failed to (?:load model,|create_?context)|unable to load model \||exiting due to"
    r"|^usage:|to show complete usage"
)
_UNTELLING = re.compile(
    r"listening on|cleaning up before exit|GGML_BACKTRACE|native backtrace|^[\s-]*$|security risk"
    r"|CORS is set"
)


def last_words(status: int, lines: Sequence[str], cause: Cause | None = None) -> str:
    """The lines that tell of the end, those of `cause` above all, and how it ended."""
    return "\n".join(filter(None, [last_lines(lines, cause), ending(status)]))


def last_lines(lines: Sequence[str], cause: Cause | None = None) -> str:
    """The lines of an engine's log that tell a person something; no stack, no absolute path."""
    # Each once: an engine says twice what fails already while it plans its memory.
    words = {
        plain(line): tells_failure(line)
        for line in lines
        if not is_stack_frame(line) and not _UNTELLING.search(plain(line))
    }
    failing = [word for word, is_failure in words.items() if is_failure]
    telling = [word for word in failing if not _CONSEQUENCE.search(word)]
    of_the_cause = [
        word
        for word in map(plain, filter(may_be_fatal, lines))
        if cause is not None and cause.is_told_by(word) and not _CONSEQUENCE.search(word)
    ]
    chosen = dict.fromkeys(of_the_cause[:_EVIDENCE_LINES])
    for word in reversed(telling or failing or list(words)):
        if len(chosen) < _EVIDENCE_LINES:
            chosen[word] = None
    return without_paths("\n".join(word for word in words if word in chosen))


_ABSOLUTE_PATH = re.compile(
    r"(?<![\w/\\.])(?<!:/)(?:[A-Za-z]:)?[\\/](?:[^\s'\"\\/]+[\\/])+([^\s'\"\\/]*)"
)


def without_paths(text: str) -> str:
    """`text` with each absolute path cut down to its last name; addresses stay whole."""
    return _ABSOLUTE_PATH.sub(r"\1", text)
