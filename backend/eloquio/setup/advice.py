"""What to do about a failure, told from what the failing tool said."""

import re

LAST_LINES = 12

_CAUSES = (
    (
        r"No space left on device|ENOSPC|disk quota",
        "The disk is full: make room there, then run it again.",
    ),
    (
        r"ensurepip is not available|No module named '?(ensurepip|venv)",
        "This Python lacks its venv module: on Debian or Ubuntu `apt-get install python3-venv`.",
    ),
    (
        r"EACCES|EPERM|Permission denied|Operation not permitted|Read-only file system",
        "A folder can't be written: check who owns the checkout and the caches of pip and npm.",
    ),
    (
        r"package-lock\.json.*(not in sync|sync)|npm error code EUSAGE",
        "package.json and package-lock.json disagree: `npm install` writes a new lock.",
    ),
    (
        r"name resolution|Name or service not known|nodename nor servname|NewConnectionError"
        r"|Max retries exceeded|Network is unreachable|Connection (refused|reset|aborted)"
        r"|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET|ENETUNREACH|timed out"
        r"|Could not connect|ProxyError|\(from versions: none\)",
        "The package server can't be reached: check the network or the proxy, then run it again.",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|SELF_SIGNED_CERT|UNABLE_TO_(GET|VERIFY)",
        "The package server's certificate isn't trusted here: name the right one with PIP_CERT "
        "and NODE_EXTRA_CA_CERTS.",
    ),
    (
        r"HASHES? .*DO NOT MATCH|THESE PACKAGES DO NOT MATCH|EINTEGRITY",
        "A download was damaged: empty the cache (`pip cache purge`, `npm cache clean --force`).",
    ),
    (
        r"CUDA::\w+|no GPU was detected|Could not find nvcc|No CUDA toolset",
        "The whole CUDA toolkit is needed, with cuBLAS, and the driver of a GPU; for a GPU that "
        "isn't here name its kind, as in CMAKE_ARGS=-DCMAKE_CUDA_ARCHITECTURES=90.",
    ),
    (
        r"No CMAKE_C(XX)?_COMPILER|(gcc|cc|g\+\+|c\+\+): (not found|No such file)"
        r"|unable to execute '?(gcc|cc|g\+\+)|CMAKE_MAKE_PROGRAM is not set",
        "A C++ compiler and make are needed: on Debian or Ubuntu `apt-get install "
        "build-essential`.",
    ),
    (
        r"No matching distribution found|not a supported wheel|Requires-Python",
        "A package has no build for this Python or processor: try another Python, 3.11 to 3.13.",
    ),
    (
        r"Killed|Cannot allocate memory|heap out of memory|MemoryError",
        "The memory didn't suffice: end other programs, then run it again.",
    ),
)


def advice(output: str) -> str:
    """The next step for a person who reads this output of a tool that failed."""
    for pattern, next_step in _CAUSES:
        if re.search(pattern, output, re.IGNORECASE):
            return next_step
    return "The lines above are the tool's own; running it again goes on from here."


def last_lines(output: str, count: int = LAST_LINES) -> str:
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return "\n".join(f"      {line}" for line in lines[-count:])
