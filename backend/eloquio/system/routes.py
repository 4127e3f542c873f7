"""Whether the server lives and can answer, and what machine it runs on."""

from fastapi import APIRouter, Request

from eloquio.engines.inventory import Inventory
from eloquio.errors import NoEngineReady
from eloquio.system.machine import describe
from eloquio.system.schema import Health, Readiness, SystemReply
from eloquio.system.version import own_version

router = APIRouter(tags=["system"])


@router.get("/health")
async def health() -> Health:
    """Alive: this process answers, whatever its engines do."""
    return Health(version=own_version())


@router.get("/ready")
async def ready(request: Request) -> Readiness:
    """Ready: an engine can answer now. Else 503, with the reason."""
    if not request.app.state.pool.is_ready():
        raise NoEngineReady("No model is ready to answer.")
    return Readiness()


@router.get("/system")
async def system(request: Request) -> SystemReply:
    """The processor, memory, accelerators and engines of this machine, as they are now."""
    inventory: Inventory = request.app.state.inventory
    return await describe(inventory)
