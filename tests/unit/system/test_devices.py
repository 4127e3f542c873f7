"""What this machine is, and what llama-server says of its accelerators."""

import os
from types import SimpleNamespace

import psutil
import pynvml
import pytest

from eloquio.engines.devices import (
    MIB,
    Device,
    main_memory,
    nvidia_devices,
    parse_list_devices,
)
from eloquio.system.devices import cpu

ROW = "  CUDA0: NVIDIA GeForce RTX 4090 (24082 MiB, 23664 MiB free)"


def test_each_device_is_read_with_its_memory():
    [device] = parse_list_devices(f"ggml_cuda_init: found 1 device\nAvailable devices:\n{ROW}\n")
    assert device == Device("CUDA0", "NVIDIA GeForce RTX 4090", 24082 * MIB, 23664 * MIB)
    assert device.kind == "cuda"


@pytest.mark.parametrize(
    ("row", "id_", "name", "kind"),
    [
        (
            "  Vulkan1: AMD Radeon RX 7900 XTX (RADV NAVI31) (24576 MiB, 24000 MiB free)",
            "Vulkan1",
            "AMD Radeon RX 7900 XTX (RADV NAVI31)",
            "vulkan",
        ),
        ("  MTL0: Apple M4 Max (49152 MiB, 49151 MiB free)", "MTL0", "Apple M4 Max", "metal"),
        ("  ROCm0: gfx1100 (1 MiB, 0 MiB free)", "ROCm0", "gfx1100", "rocm"),
        (
            "  RPC0: 192.168.1.5:50052 (8 MiB, 8 MiB free)",
            "RPC0",
            "192.168.1.5:50052",
            "rpc",
        ),
    ],
)
def test_names_may_hold_anything(row, id_, name, kind):
    [device] = parse_list_devices(f"Available devices:\n{row}\n")
    assert (device.id, device.name, device.kind) == (id_, name, kind)


def test_several_devices_keep_their_order():
    rows = "\n".join(ROW.replace("CUDA0", f"CUDA{n}") for n in range(3))
    devices = parse_list_devices(f"Available devices:\n{rows}\n")
    assert [device.id for device in devices] == ["CUDA0", "CUDA1", "CUDA2"]


@pytest.mark.parametrize("text", ["", "Available devices:\n", "Available devices:\n  (none)\n"])
def test_no_device_is_no_device(text):
    assert parse_list_devices(text) == []


def test_without_a_container_the_machines_memory_is_told(tmp_path):
    memory = main_memory(tmp_path)
    assert memory.total_bytes == psutil.virtual_memory().total
    assert 0 < memory.available_bytes <= memory.total_bytes


def test_in_a_container_its_share_is_told(tmp_path):
    (tmp_path / "memory.max").write_text(f"{100 * MIB}\n")
    (tmp_path / "memory.current").write_text(f"{70 * MIB}\n")
    (tmp_path / "memory.stat").write_text(f"anon 1\ninactive_file {20 * MIB}\nactive_file 5\n")
    memory = main_memory(tmp_path)
    assert memory.total_bytes == 100 * MIB
    assert memory.available_bytes == 50 * MIB


def test_a_container_without_a_limit_has_the_machine(tmp_path):
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1\n")
    assert main_memory(tmp_path).total_bytes == psutil.virtual_memory().total


def test_the_processor_is_named_and_counted():
    processor = cpu()
    assert processor.name
    assert 1 <= processor.cores <= processor.threads <= (os.cpu_count() or 1)


def test_nvidia_cards_are_told_with_their_memory(monkeypatch):
    memory = SimpleNamespace(total=24 * MIB, free=20 * MIB)
    for name, answer in {
        "nvmlInit": None,
        "nvmlShutdown": None,
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetHandleByIndex": object(),
        "nvmlDeviceGetName": "NVIDIA L4",
        "nvmlDeviceGetMemoryInfo": memory,
    }.items():
        monkeypatch.setattr(pynvml, name, lambda *_, answer=answer: answer)
    assert nvidia_devices() == [Device("CUDA0", "NVIDIA L4", 24 * MIB, 20 * MIB)]


def test_without_their_driver_there_are_none(monkeypatch):
    def no_driver() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", no_driver)
    assert nvidia_devices() == []
