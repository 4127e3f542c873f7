"""The HTTP shapes of what this machine is and how it does."""

from typing import Literal

from pydantic import BaseModel


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    service: Literal["eloquio"] = "eloquio"
    version: str


class Readiness(BaseModel):
    status: Literal["ready"] = "ready"


class CpuInfo(BaseModel):
    name: str
    cores: int
    threads: int
    flags: list[str]


class MemoryInfo(BaseModel):
    total_bytes: int
    available_bytes: int
    """What a model can get without swapping."""


class DeviceInfo(BaseModel):
    id: str
    name: str
    kind: str
    total_bytes: int
    free_bytes: int
    is_usable: bool
    """Whether an engine that is here can run on it."""


class EngineBuild(BaseModel):
    engine: Literal["llama_server"] = "llama_server"
    source: str
    """Where it was found: the setting, PATH, built here, or the prebuilt wheel."""
    version: str | None
    problem: str | None
    """Why it couldn't be asked."""


class ProcessInfo(BaseModel):
    resident_bytes: int
    uptime_s: float


class SystemReply(BaseModel):
    version: str
    cpu: CpuInfo
    memory: MemoryInfo
    devices: list[DeviceInfo]
    engines: list[EngineBuild]
    process: ProcessInfo
