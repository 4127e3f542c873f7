"""What an engine can run on: the devices that llama-server sees, the processor, main memory."""

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path

import psutil

MIB = 1024 * 1024

_DEVICE = re.compile(r"^\s+(\S+): (.+) \((\d+) MiB, (\d+) MiB free\)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Device:
    """One accelerator, as llama-server names it; `id` is what its `--device` takes."""

    id: str
    name: str
    total_bytes: int
    free_bytes: int

    @property
    def kind(self) -> str:
        """How it is driven: "cuda", "vulkan", "metal", "rocm" and so on."""
        letters = self.id.rstrip("0123456789").lower()
        return "metal" if letters == "mtl" else letters


@dataclass(frozen=True)
class MainMemory:
    total_bytes: int
    available_bytes: int
    """What a new process can get without swapping: free, and caches that give way."""


def parse_list_devices(text: str) -> list[Device]:
    """The devices in what `llama-server --list-devices` prints; the processor isn't one of them."""
    return [
        Device(match[1], match[2], int(match[3]) * MIB, int(match[4]) * MIB)
        for match in _DEVICE.finditer(text)
    ]


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


@functools.cache
def processor_features() -> frozenset[str]:
    """The processor's instruction sets, as Linux names them; none where it doesn't tell."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


def processor_cores() -> int:
    """The cores that this process may use, each counted once however many threads it runs."""
    usable = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        usable = min(usable, len(os.sched_getaffinity(0)))
    return usable


def main_memory(cgroup: Path = Path("/sys/fs/cgroup")) -> MainMemory:
    """The machine's memory, or what is left of a container's share of it."""
    machine = psutil.virtual_memory()
    limit = _number(cgroup / "memory.max")
    used = _number(cgroup / "memory.current")
    if limit is None or used is None or limit >= machine.total:
        return MainMemory(machine.total, machine.available)
    free = max(0, limit - used + _inactive_file_bytes(cgroup / "memory.stat"))
    return MainMemory(limit, min(free, machine.available))


def _inactive_file_bytes(stat: Path) -> int:
    """File cache that the kernel gives up first: it counts as used, but is there to be had."""
    try:
        lines = stat.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
