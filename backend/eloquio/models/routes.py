"""Loading, unloading and looking at models."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from eloquio import sse
from eloquio.engines.loads import Terms
from eloquio.engines.pool import Pool
from eloquio.errors import LoadCancelled, ModelNotFound, PersonOnly
from eloquio.models import describe
from eloquio.models.catalog import Catalog
from eloquio.models.loading import Planner, terms
from eloquio.models.schema import (
    KeepReply,
    KeepRequest,
    LoadProgress,
    LoadReply,
    LoadRequest,
    ModelCard,
    ModelList,
    PageSettings,
    StatusReply,
    UnloadReply,
    UnloadRequest,
    ValidateReply,
)
from eloquio.store.preferences import PreferenceStore

router = APIRouter(tags=["models"])

logger = structlog.get_logger(__name__)


def _pool(request: Request) -> Pool:
    pool: Pool = request.app.state.pool
    return pool


def _planner(request: Request) -> Planner:
    planner: Planner = request.app.state.planner
    return planner


def _catalog(request: Request) -> Catalog:
    catalog: Catalog = request.app.state.catalog
    return catalog


def _preferences(request: Request) -> PreferenceStore:
    preferences: PreferenceStore = request.app.state.preferences
    return preferences


def person_only(request: Request) -> None:
    """Refuses what isn't sent by the page: what only the person may change is changed there.

    A browser says that its page asks, except over plain http to another machine. There a key is
    asked for, and who comes in without sending one has signed in on the page.
    """
    brings_key = "authorization" in request.headers or "x-api-key" in request.headers
    site = request.headers.get("sec-fetch-site")
    is_page = site == "same-origin" or (site is None and request.app.state.door is not None)
    if brings_key or not is_page:
        raise PersonOnly("Only the page can read or change the settings.")


PoolNow = Annotated[Pool, Depends(_pool)]
PlannerNow = Annotated[Planner, Depends(_planner)]
CatalogNow = Annotated[Catalog, Depends(_catalog)]
PreferencesNow = Annotated[PreferenceStore, Depends(_preferences)]


@router.post("/load")
async def load_model(
    body: LoadRequest, pool: PoolNow, planner: PlannerNow, preferences: PreferencesNow
) -> LoadReply:
    """Load a model and answer when it is ready. A caller that leaves doesn't end the load."""
    engine, was_loaded = await pool.load(body.model_path, lambda: planner.plan(body), terms(body))
    spec = engine.spec
    repeated = body.model_copy(update={"model_path": spec.model, "gguf_variant": None})
    try:
        await preferences.remember_load(
            # What nobody sent stays so: a default is no wish that a warning has to answer.
            repeated.model_dump(mode="json", exclude={"hf_token", "force"}, exclude_unset=True)
        )
    except sqlite3.Error as error:  # a full disk takes nothing from a model that is loaded
        logger.warning("load_not_remembered", model=spec.model, reason=str(error))
    loaded = describe.loaded_model(engine)
    if loaded is None:
        raise LoadCancelled("The model was unloaded as soon as it was ready.")
    return LoadReply(status="already_loaded" if was_loaded else "loaded", **loaded.model_dump())


@router.get(
    "/load/progress",
    response_model=LoadProgress,
    responses={200: {"content": {sse.MEDIA_TYPE: {}}}},
)
async def load_progress(request: Request, pool: PoolNow) -> Response:
    """How the load under way goes: once as JSON, or as an event stream where that is accepted."""
    if sse.MEDIA_TYPE not in request.headers.get("accept", ""):
        return JSONResponse(describe.load_progress(pool).model_dump(mode="json"))
    return StreamingResponse(_progress_events(pool), headers=sse.HEADERS)


async def _progress_events(pool: Pool) -> AsyncIterator[bytes]:
    last: LoadProgress | None = None
    async for progress in pool.changed.watch(
        lambda: describe.load_progress(pool), sse.HEARTBEAT_SECONDS
    ):
        is_new, last = progress != last, progress
        yield sse.event(progress.model_dump(mode="json")) if is_new else sse.HEARTBEAT


@router.post("/validate")
async def validate_model(body: LoadRequest, pool: PoolNow, planner: PlannerNow) -> ValidateReply:
    """Whether a load would find a model that fits, and what it would take. Loads nothing."""
    # Whatever is busy now: the answer says what would have to end for it.
    forced = replace(terms(body), force=True)
    return describe.validation(await pool.placement(await planner.plan(body), forced))


@router.post("/unload")
async def unload_model(pool: PoolNow, body: UnloadRequest | None = None) -> UnloadReply:
    """End a model's engine, or its load, at whatever point it is."""
    asked, force = (body.model_path, body.force) if body else (None, True)
    ended = await pool.unload(asked, force=force)
    return UnloadReply(status="unloaded" if ended else "not_loaded", model=ended or asked)


@router.post("/keep")
async def keep_model(body: KeepRequest, pool: PoolNow) -> KeepReply:
    """Change how long a loaded model stays. Starts and ends nothing."""

    def changed(terms: Terms) -> Terms:
        return replace(
            terms,
            ttl_seconds=terms.ttl_seconds if body.ttl_s is None else body.ttl_s,
            is_pinned=terms.is_pinned if body.pin is None else body.pin,
        )

    engine = await pool.keep(body.model_path, changed)
    keeping = engine.keeping
    return KeepReply(model=engine.spec.model, ttl_s=keeping.ttl_seconds, pinned=keeping.is_pinned)


@router.get("/status")
async def status(pool: PoolNow) -> StatusReply:
    """What runs now. Asking keeps no model alive."""
    return describe.status(pool)


@router.get("/models")
async def list_models(pool: PoolNow, catalog: CatalogNow) -> ModelList:
    """Loaded models first, then what is on disk."""
    entries = await asyncio.to_thread(catalog.scan)
    statuses = describe.in_memory(pool)
    return ModelList(data=await asyncio.to_thread(describe.model_cards, entries, statuses))


@router.get("/models/{model_id:path}")
async def get_model(model_id: str, pool: PoolNow, catalog: CatalogNow) -> ModelCard:
    for entry in await asyncio.to_thread(catalog.scan):
        if entry.id == model_id:
            return await asyncio.to_thread(describe.model_card, entry, describe.in_memory(pool))
    raise ModelNotFound("There is no model of that name here.", param="model")


@router.get("/settings", dependencies=[Depends(person_only)])
async def get_settings(preferences: PreferencesNow) -> PageSettings:
    return PageSettings.of(preferences.current)


@router.put("/settings", dependencies=[Depends(person_only)])
async def put_settings(body: PageSettings, preferences: PreferencesNow) -> PageSettings:
    """Change what the person chose: model folders, loading at the start, worker environments."""
    folders = await asyncio.to_thread(body.existing_folders)
    environments = await asyncio.to_thread(body.environments)
    changed = await preferences.choose(
        folders, load_on_start=body.load_on_start, worker_envs=environments
    )
    return PageSettings.of(changed)
