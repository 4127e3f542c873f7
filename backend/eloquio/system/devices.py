"""What this machine is: its processor, and its NVIDIA cards as their driver tells of them."""

import functools
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from eloquio.engines.devices import Device, processor_features

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


def nvidia_devices() -> list[Device]:
    """The NVIDIA cards, with what is free of their memory now; none without their driver."""
    # Only here: the library costs 20 ms, and most who start the server never ask.
    import pynvml  # type: ignore[import-untyped]

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return [_nvidia_device(index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def _nvidia_device(index: int) -> Device:
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Device(
        id=f"CUDA{index}",
        name=pynvml.nvmlDeviceGetName(handle),
        total_bytes=memory.total,
        free_bytes=memory.free,
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
