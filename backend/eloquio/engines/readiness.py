"""When a started engine can be used, and that what answers is it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus

import aiohttp

from eloquio.engines import exits
from eloquio.engines.address import Address, is_listened_by
from eloquio.engines.facts import Facts
from eloquio.engines.process import EngineProcess
from eloquio.engines.watchdog import Watchdog
from eloquio.errors import EngineNoProgress, EngineSocketFailed, EngineStartFailed
from eloquio.settings import Settings

_POLL_SECONDS = 0.05
# A load that takes long is asked less often: being asked mustn't look like being at work.
_QUICK_SECONDS = 5.0
_PATIENT_POLL_SECONDS = 0.25
_PROBE = aiohttp.ClientTimeout(total=5.0)


@dataclass(frozen=True)
class WeightsRead:
    """How far an engine says that it is."""

    loaded_bytes: int
    total_bytes: int


async def until_healthy(
    client: aiohttp.ClientSession, process: EngineProcess, settings: Settings
) -> AsyncIterator[WeightsRead | None]:
    """Goes on until the engine serves or has ended, whatever that takes; tells what it says.

    EngineNoProgress once it hasn't moved for the settings' `start_inactivity_seconds`: the bound is
    inactivity, since a load that moves may take hours.
    """
    limit = settings.start_inactivity_seconds
    started = time.monotonic()
    watchdog = Watchdog(started, process.signs_of_life())
    while process.returncode is None:
        health, read = await _health(client)
        if health == "200":
            return
        watchdog.observe(process.signs_of_life(), health, time.monotonic())
        if watchdog.idle_seconds(time.monotonic()) > limit:
            raise EngineNoProgress(
                f"The engine showed no sign of life for {limit:g} s while it was starting.",
                evidence=exits.last_lines(process.log.lines),
            )
        yield read
        is_quick = time.monotonic() - started < _QUICK_SECONDS
        await asyncio.sleep(_POLL_SECONDS if is_quick else _PATIENT_POLL_SECONDS)


async def facts(
    client: aiohttp.ClientSession, process: EngineProcess, address: Address, model: str
) -> Facts:
    """What the engine says of itself; EngineSocketFailed if it isn't ours that says so."""
    if not await is_listened_by(address, process.pid):
        raise EngineSocketFailed("Another server answers in the engine's place.")
    try:
        async with client.get("/props", timeout=_PROBE) as reply:
            properties = await reply.json()
    except (aiohttp.ClientError, TimeoutError, ValueError) as failure:
        raise EngineStartFailed("The engine started but can't describe itself.") from failure
    if not isinstance(properties, dict):
        raise EngineStartFailed("The engine started but can't describe itself.")
    alias = properties.get("model_alias", model if address.socket_path else None)
    if alias != model:
        raise EngineSocketFailed("Another server answers in the engine's place.")
    return Facts.of(properties)


async def _health(client: aiohttp.ClientSession) -> tuple[str, WeightsRead | None]:
    """What a question for its health brings: the status, or "refused"; and what it says of itself.

    llama-server says only that it is loading.
    """
    try:
        async with client.get("/health", timeout=_PROBE) as reply:
            is_loading = reply.status == HTTPStatus.SERVICE_UNAVAILABLE
            return str(reply.status), _weights_read(await reply.read()) if is_loading else None
    except (aiohttp.ClientError, TimeoutError):
        return "refused", None


def _weights_read(body: bytes) -> WeightsRead | None:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return None
    match told:
        case {"progress": {"loaded_bytes": int(loaded), "total_bytes": int(total)}}:
            return WeightsRead(min(loaded, total), total)
        case _:
            return None
