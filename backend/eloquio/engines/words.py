"""An engine's own words: which of its lines tell of a failure, and how they are shown."""

import re

_LINE_CHARACTERS = 300
# Builds since 2025 begin a line with the time and a level, those of 2024 with a longer level.
_PREFIX = re.compile(
    r"^(?:(?:\d+\.){3}\d+ +(?:(?P<level>[IWED]) +)?|(?P<bare>[IWED]) +(?=[a-z_]+:? )"
    r"| *(?P<word>INFO|WARN|ERR|VERB) +\[ *)"
)
_GONE_ON_AFTER = {"I", "W", "D", "INFO", "WARN", "VERB"}
# Where no level is printed: these go on without what they speak of.
_HARMLESS = re.compile(
    r"\bwarning\b|pinned memory|retrying|fall(?:ing)? ?back|will increase|mlock|disabling|enabling"
    r"|forcing|ignoring|failed to fit params|error while trying to fit|print_info|general\.name",
    re.IGNORECASE,
)
_FAILURE = re.compile(
    r"fail|error|unable|can(?:no|')t\b|couldn't|could not|unsupported|not support|not found"
    r"|missing|invalid|unknown|out of memory|OutOf\w*Memory|insufficient|mismatch|wrong|assert"
    r"|abort|exception|terminat|fatal|what\(\)|no device code|no \w+ config",
    re.IGNORECASE,
)
_STACK_FRAME = re.compile(
    r"^#\d+ |^\[(?:New LWP|Thread |Inferior )|^\S*\(\S*\+0x[0-9a-f]+\)|^\d+ +\S+ +0x"
)


def is_stack_frame(line: str) -> bool:
    """Whether it is a debugger's or the C library's line of a crash's stack."""
    return bool(_STACK_FRAME.search(line))


def may_be_fatal(line: str) -> bool:
    """Whether the engine can have ended for what the line tells; not if it went on after it."""
    prefix = _PREFIX.match(line)
    level = prefix and (prefix["level"] or prefix["bare"] or prefix["word"])
    return level not in _GONE_ON_AFTER and not is_stack_frame(line) and not _HARMLESS.search(line)


def tells_failure(line: str) -> bool:
    return may_be_fatal(line) and bool(_FAILURE.search(line))


def plain(line: str) -> str:
    """Without time and level, by which the same words would look like other ones."""
    return _PREFIX.sub("", line, count=1).strip()[:_LINE_CHARACTERS]
