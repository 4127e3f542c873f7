"""The machine as a reply tells it: no path, no serial number, no name of a person."""

import asyncio
import time
from dataclasses import asdict

import psutil

from eloquio.engines.devices import Device, main_memory, nvidia_devices
from eloquio.engines.inventory import Build, Inventory
from eloquio.errors import EngineMissing
from eloquio.system.devices import cpu
from eloquio.system.schema import (
    CpuInfo,
    DeviceInfo,
    EngineBuild,
    MemoryInfo,
    ProcessInfo,
    SystemReply,
)
from eloquio.system.version import own_version


async def describe(inventory: Inventory) -> SystemReply:
    """Everything about this machine that decides what runs on it, as it is now."""
    try:
        build: Build | None = await inventory.build()
    except EngineMissing:
        build = None
    return await asyncio.to_thread(_describe, build)


def with_unusable(seen: tuple[Device, ...], cards: list[Device]) -> list[DeviceInfo]:
    """What the engine sees, and after it the NVIDIA cards that it doesn't see."""
    unseen = [card for card in cards if not any(card.name in device.name for device in seen)]
    return [
        *(_device(device, is_usable=True) for device in seen),
        *(_device(card, is_usable=False) for card in unseen),
    ]


def _describe(build: Build | None) -> SystemReply:
    return SystemReply(
        version=own_version(),
        cpu=CpuInfo.model_validate(asdict(cpu())),
        memory=MemoryInfo.model_validate(asdict(main_memory())),
        devices=with_unusable(build.devices if build else (), nvidia_devices()),
        engines=[_engine(build)] if build else [],
        process=_process(),
    )


def _device(device: Device, *, is_usable: bool) -> DeviceInfo:
    return DeviceInfo(kind=device.kind, is_usable=is_usable, **asdict(device))


def _engine(build: Build) -> EngineBuild:
    problem = build.problem.message if build.problem else None
    return EngineBuild(source=build.source, version=build.version, problem=problem)


def _process() -> ProcessInfo:
    process = psutil.Process()
    return ProcessInfo(
        resident_bytes=process.memory_info().rss, uptime_s=time.time() - process.create_time()
    )
