"""Loading, unloading and looking at models."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from eloquio.engines.pool import Pool
from eloquio.errors import ModelNotFound, PersonOnly
from eloquio.models import describe
from eloquio.models.catalog import Catalog
from eloquio.models.loading import Planner
from eloquio.models.schema import (
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

_HEARTBEAT_SECONDS = 10.0


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
    """Refuses a script's key: what only the person may change is changed on the page."""
    if "authorization" in request.headers or "x-api-key" in request.headers:
        raise PersonOnly("A key can't read or change the settings.")


PoolNow = Annotated[Pool, Depends(_pool)]
PlannerNow = Annotated[Planner, Depends(_planner)]
CatalogNow = Annotated[Catalog, Depends(_catalog)]
PreferencesNow = Annotated[PreferenceStore, Depends(_preferences)]


@router.post("/load")
async def load_model(
    body: LoadRequest, pool: PoolNow, planner: PlannerNow, preferences: PreferencesNow
) -> LoadReply:
    """Load a model and answer when it is ready. A caller that leaves doesn't end the load."""
    spec = await planner.plan(body, pool)
    engine, was_loaded = await pool.load(spec, keep_others=body.keep_others, force=body.force)
    repeated = body.model_copy(update={"model_path": spec.model, "gguf_variant": None})
    await preferences.remember_load(repeated.model_dump(mode="json", exclude={"hf_token", "force"}))
    loaded = describe.loaded_model(engine)
    if loaded is None:
        raise engine.last_error or ModelNotFound("The model was unloaded as soon as it was ready.")
    return LoadReply(status="already_loaded" if was_loaded else "loaded", **loaded.model_dump())


@router.get(
    "/load/progress",
    response_model=LoadProgress,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def load_progress(request: Request, pool: PoolNow) -> Response:
    """How the load under way goes: once as JSON, or as an event stream where that is accepted."""
    if "text/event-stream" not in request.headers.get("accept", ""):
        return JSONResponse(describe.load_progress(pool).model_dump(mode="json"))
    return StreamingResponse(
        _progress_events(pool),
        media_type="text/event-stream",
        headers={"cache-control": "no-cache", "x-accel-buffering": "no"},
    )


async def _progress_events(pool: Pool) -> AsyncIterator[str]:
    last: LoadProgress | None = None
    changes = pool.changed.watch(lambda: describe.load_progress(pool))
    upcoming = asyncio.ensure_future(anext(changes, None))
    try:
        while True:
            done, _ = await asyncio.wait([upcoming], timeout=_HEARTBEAT_SECONDS)
            if not done:
                yield ": still here\n\n"
                continue
            if (progress := upcoming.result()) is None:
                return
            if progress != last:
                yield f"data: {progress.model_dump_json()}\n\n"
            last = progress
            upcoming = asyncio.ensure_future(anext(changes, None))
    finally:
        upcoming.cancel()


@router.post("/validate")
async def validate_model(body: LoadRequest, pool: PoolNow, planner: PlannerNow) -> ValidateReply:
    """Whether a load would find a model that fits, and what it would take. Loads nothing."""
    return describe.validation(await planner.plan(body, pool))


@router.post("/unload")
async def unload_model(
    pool: PoolNow, planner: PlannerNow, body: UnloadRequest | None = None
) -> UnloadReply:
    """End a model's engine, or its load, at whatever point it is."""
    asked = body.model_path if body else None
    ended = await pool.unload(asked)
    if ended is None and asked is not None:
        ended = await pool.unload(await planner.id_of(asked))
    return UnloadReply(status="unloaded" if ended else "not_loaded", model=ended or asked)


@router.get("/status")
async def status(pool: PoolNow) -> StatusReply:
    """What runs now. Asking keeps no model alive."""
    return describe.status(pool)


@router.get("/models")
async def list_models(pool: PoolNow, catalog: CatalogNow) -> ModelList:
    """Loaded models first, then what is on disk."""
    entries = await asyncio.to_thread(catalog.scan)
    return ModelList(data=describe.model_cards(entries, pool))


@router.get("/models/{model_id:path}")
async def get_model(model_id: str, pool: PoolNow, catalog: CatalogNow) -> ModelCard:
    entries = await asyncio.to_thread(catalog.scan)
    for card in describe.model_cards(entries, pool):
        if card.id == model_id:
            return card
    raise ModelNotFound("There is no model of that name here.", param="model")


@router.get("/settings", dependencies=[Depends(person_only)])
async def get_settings(preferences: PreferencesNow) -> PageSettings:
    return PageSettings.of(preferences.current)


@router.put("/settings", dependencies=[Depends(person_only)])
async def put_settings(body: PageSettings, preferences: PreferencesNow) -> PageSettings:
    """Change what the person chose: the model folders, and whether to load at the start."""
    folders = await asyncio.to_thread(body.existing_folders)
    changed = await preferences.choose(folders, load_on_start=body.load_on_start)
    return PageSettings.of(changed)
