"""Which part of a llama-server's command line made it fail: what a second start may leave out.

Pure, and careful: a start without a part is only right when that part was at fault. An engine that
ran out of memory for its weights, or whose model happens to be called clip, blames nothing here.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from eloquio.engines.exits import is_crash
from eloquio.engines.words import is_stack_frame, tells_failure

PROJECTOR_FLAG = "--mmproj"
FLASH_ATTENTION_FLAG = "--flash-attn"


@dataclass(frozen=True)
class Blame:
    """`option` is the flag to leave out; for flash attention, the one to set to off."""

    part: Literal["projector", "flash_attention", "option"]
    option: str


def blamed(lines: Sequence[str], status: int, options: Sequence[tuple[str, ...]]) -> Blame | None:
    """What is to blame for an engine's end with `status` (negative: a signal) after `lines`.

    `options` is its command line, each flag with its values. None: nothing that could be left out.
    """
    return (
        _refused_option(lines, options)
        or _failed_projector(lines, status, options)
        or _failed_flash_attention(lines, status, options)
    )


# An option of the command line -----------------------------------------------------------------

_REFUSED = re.compile(
    r"(?:invalid|unknown) argument: (?P<argument>\S+)"
    r"|error while handling argument \"(?P<handled>[^\"]+)\""
)


def _refused_option(lines: Sequence[str], options: Sequence[tuple[str, ...]]) -> Blame | None:
    refusals = (_REFUSED.search(line) for line in lines)
    refused = next((match["argument"] or match["handled"] for match in refusals if match), None)
    if refused is None:
        return None
    by_flag = (option[0] for option in options if _spelling(option[0]) == _spelling(refused))
    # An older build, whose flag takes no value yet, refuses the value for an argument of its own;
    # it reads from the left and ends at the first that it doesn't know.
    by_value = (option[0] for option in options if refused in option[1:])
    flag = next(by_flag, None) or next(by_value, None)
    return None if flag is None else Blame("option", flag)


def _spelling(flag: str) -> str:
    # llama-server takes --top_k for --top-k, and says back whichever it was given.
    return flag.replace("_", "-") if flag.startswith("--") else flag


# A part, by the lines that tell of a failure -----------------------------------------------------

_LAST_LINES = 6
# The names of files are a person's words, not the engine's.
_FILES = re.compile(r"'[^']*\.gguf'|\"[^\"]*\.gguf\"|\S+\.gguf\b")
_MODEL_FAILED = re.compile(
    r"failed to load model\b|error loading model: |failed to create_?\s?context with"
    r"|failed to initialize the context|failed to (?:load|apply) lora|failed to load draft"
)
_PROJECTOR = re.compile(
    r"\bclip(?:_\w+|\.cpp)?\b|\bmtmd\w*\b|\bmmproj\b|\bprojector\b|multimodal model"
    r"|alloc_compute_meta|warmup with (?:image|audio)",
    re.IGNORECASE,
)
_FLASH_ATTENTION = re.compile(r"flash.?att(?:entio)?n|\bfattn", re.IGNORECASE)
# These fail for want of flash attention: without it they fail the more.
_NEEDS_FLASH_ATTENTION = re.compile(
    r"requires? flash.?att|flash.?att\w* to be enabled|since it is required", re.IGNORECASE
)


# The projector's memory is only measured so that the model leaves room: it goes on without.
_MEASURING = re.compile(r"mtmd_get_memory_usage|failed to get memory usage")


def _failed_projector(
    lines: Sequence[str], status: int, options: Sequence[tuple[str, ...]]
) -> Blame | None:
    files = [option[1] for option in options if option[0] == PROJECTOR_FLAG and len(option) > 1]
    if not files:
        return None
    file_name = re.escape(re.split(r"[\\/]", files[0])[-1])
    of_its_file = re.compile(rf"(?<![\w.-]){file_name}(?![\w-])")

    def concerns(line: str) -> bool:
        if _MEASURING.search(line):
            return False
        return bool(_PROJECTOR.search(_FILES.sub("", line)) or of_its_file.search(line))

    spoken = [line for line in lines if line and not is_stack_frame(line)]
    last_lines = [line for line in spoken[-_LAST_LINES:] if "general.name" not in line]
    died_in_it = is_crash(status) and any(map(concerns, last_lines))
    if died_in_it or _last_failure_concerns(lines, concerns):
        return Blame("projector", PROJECTOR_FLAG)
    return None


def _failed_flash_attention(
    lines: Sequence[str], status: int, options: Sequence[tuple[str, ...]]
) -> Blame | None:
    if any(_turns_off_flash_attention(option) for option in options):
        return None

    def concerns(line: str) -> bool:
        words = _FILES.sub("", line)
        return bool(_FLASH_ATTENTION.search(words)) and not _NEEDS_FLASH_ATTENTION.search(words)

    stack = [line for line in lines if is_stack_frame(line)]
    died_in_it = is_crash(status) and any(map(concerns, stack))
    if died_in_it or _last_failure_concerns(lines, concerns):
        return Blame("flash_attention", FLASH_ATTENTION_FLAG)
    return None


def _turns_off_flash_attention(option: tuple[str, ...]) -> bool:
    is_flag = option[0] in (FLASH_ATTENTION_FLAG, "-fa")
    return is_flag and bool({"off", "0", "false", "disabled"} & set(option[1:]))


def _last_failure_concerns(lines: Sequence[str], concerns: Callable[[str], bool]) -> bool:
    """Whether the part failed, and nothing of the model itself failed after it.

    A projector whose memory can't be measured, say, is left at that, and the model goes on loading.
    """
    for line in reversed(lines):
        if tells_failure(_FILES.sub("…", line)):
            if concerns(line):
                return True
            if _MODEL_FAILED.search(line):
                return False
    return False
