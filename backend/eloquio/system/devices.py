"""What this machine's processor is."""

import functools
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from eloquio.engines.devices import processor_features

# The instruction sets that decide which build of an engine runs here, and how fast.
_TELLING_FLAGS = (
    *("sse4_2", "avx", "f16c", "fma", "bmi2", "avx2", "avx_vnni"),
    *("avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8"),
    *("asimd", "asimddp", "i8mm", "sve", "sve2", "bf16"),
)


@dataclass(frozen=True)
class Cpu:
    name: str
    cores: int
    """Physical ones, as far as the system tells them apart."""
    threads: int
    """How many of them this process may use."""
    flags: tuple[str, ...]


@functools.cache
def cpu() -> Cpu:
    threads = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    features = processor_features()
    return Cpu(
        name=_cpu_name(),
        cores=min(psutil.cpu_count(logical=False) or threads, threads),
        threads=threads,
        flags=tuple(flag for flag in _TELLING_FLAGS if flag in features),
    )


def _cpu_name() -> str:
    if sys.platform == "darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
        return said.stdout.strip() or platform.machine()
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()
