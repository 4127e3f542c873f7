"""The application: what is made at the start and ended at the end, and which routes there are."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import structlog
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from eloquio import metrics
from eloquio.answers.cancels import Cancels
from eloquio.answers.exchange import RequestLog
from eloquio.audio import routes as audio
from eloquio.auth import routes as auth
from eloquio.auth.door import KeyDoor
from eloquio.auth.keys import required_key
from eloquio.chat import older_routes
from eloquio.chat import routes as chat
from eloquio.chat.completions import routes as completions
from eloquio.chat.messages import routes as messages
from eloquio.chat.reading import routes as reading
from eloquio.chat.responses import routes as responses
from eloquio.chat.runs import routes as runs_routes
from eloquio.chat.runs.log import RunLog
from eloquio.chat.runs.runs import Runs
from eloquio.engines.inventory import Inventory
from eloquio.engines.pool import Pool
from eloquio.engines.spec import EngineSpec
from eloquio.errors import (
    EloquioError,
    InvalidRequest,
    LoadCancelled,
    MethodNotAllowed,
    ModelUnloaded,
    NotFound,
)
from eloquio.errors.anthropic import body_for
from eloquio.guard import Guard, HostPolicy
from eloquio.media.fetcher import Fetcher
from eloquio.media.pictures import PictureMaker
from eloquio.metrics import Metrics
from eloquio.models import routes as models
from eloquio.models.catalog import Catalog
from eloquio.models.loading import Planner, terms
from eloquio.models.schema import LoadRequest
from eloquio.settings import BUILTIN_MODEL, Settings
from eloquio.store.database import open_database
from eloquio.store.preferences import PreferenceStore
from eloquio.system import log_routes, request_routes
from eloquio.system import routes as system
from eloquio.system.answer_log import log_answer
from eloquio.system.version import own_version

_ROUTERS = (
    *(models.router, chat.router, runs_routes.router, request_routes.router),
    *(completions.router, older_routes.router, responses.router, messages.router),
    *(reading.router, audio.router),
    *(system.router, log_routes.router, metrics.router),
)

logger = structlog.get_logger(__name__)


def create_app(settings: Settings) -> FastAPI:
    key = required_key(settings)
    door = KeyDoor(key) if key else None

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            try:
                await _open(app, settings, stack)
            except EloquioError as error:
                app.state.startup_error = error
                raise
            yield

    app = FastAPI(
        title="Eloquio",
        version=own_version(),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        middleware=[Middleware(Guard, hosts=HostPolicy.for_settings(settings), door=door)],
        exception_handlers={
            EloquioError: _render,
            RequestValidationError: _render_validation,
            HTTPException: _render_http,
        },
    )
    app.state.door = door
    for router in _ROUTERS:
        app.include_router(router, prefix="/v1")
    for router in _ROUTERS:
        # Where scripts written for others of this kind look; not listed twice.
        app.include_router(router, prefix="/api/inference", include_in_schema=False)
    _include_bare(app)
    app.include_router(auth.router)
    page = settings.page_dir or _built_page()
    if page is not None:
        app.frontend("/", directory=page, fallback="index.html")
    return app


async def end_answers(app: FastAPI) -> None:
    """Ends every answer under way with the error that says why, runs first: theirs are kept."""
    await app.state.runs.close()
    await app.state.pool.close()


def _include_bare(app: FastAPI) -> None:
    """The routes that old scripts know at the root, and the ones that watchdogs ask for."""
    names = {"/load", "/unload", "/status", "/validate", "/chat/completions"}
    names |= {"/generate/stream", "/cancel", "/health", "/ready", "/metrics"}
    for router in _ROUTERS:
        bare = APIRouter()
        bare.routes.extend(r for r in router.routes if getattr(r, "path", "") in names)
        app.include_router(bare, include_in_schema=False)


async def _open(app: FastAPI, settings: Settings, stack: AsyncExitStack) -> None:
    database = await open_database(settings.home)
    stack.push_async_callback(database.close)
    preferences = await PreferenceStore.open(database)

    def folders() -> Sequence[Path]:
        return (*settings.model_dirs, *preferences.current.model_dirs)

    inventory = Inventory(settings)
    catalog = Catalog(settings, folders)
    planner = Planner(catalog, inventory, lambda: preferences.current.worker_envs)
    pool = await Pool.open(settings, planner, inventory)
    stack.push_async_callback(pool.close)
    request_log = RequestLog(log_answer)
    pictures = PictureMaker(Fetcher() if settings.allow_remote_media else None)
    cancels = Cancels()
    runs = await Runs.open(RunLog(database), pool, request_log, cancels, pictures)
    stack.push_async_callback(runs.close)
    app.state.preferences = preferences
    app.state.inventory = inventory
    app.state.catalog = catalog
    app.state.planner = planner
    app.state.pool = pool
    app.state.runs = runs
    app.state.metrics = Metrics(pool, runs.shelf)
    request_log.tell(app.state.metrics.observe)
    app.state.request_log = request_log
    app.state.cancels = cancels
    app.state.pictures = pictures
    if settings.load_on_start and preferences.current.load_on_start:
        first = asyncio.create_task(_load_first(pool, planner, preferences.current.last_load))
        stack.push_async_callback(_end, first)


async def _load_first(pool: Pool, planner: Planner, last: dict[str, Any] | None) -> None:
    """The last model again, or the built-in one: the page is ready to chat when it opens."""
    try:
        request = await _first_request(planner, last)
        is_first = True

        async def plan() -> EngineSpec:
            nonlocal is_first
            spec = await planner.plan(request)
            if is_first and pool.latest is not None:
                # Who asked for a model meanwhile gets that one, and keeps it.
                raise LoadCancelled("Another model was asked for first.")
            # The pool remembers this plan: later it is for whoever asks for the model again.
            is_first = False
            return spec

        if pool.latest is None and not pool.is_loading:
            await pool.load(request.model_path, plan, terms(request))
    except EloquioError as error:
        logger.warning("first_load_failed", error=error.message, evidence=error.evidence)
    except Exception:
        logger.exception("first_load_failed")


async def _first_request(planner: Planner, last: dict[str, Any] | None) -> LoadRequest:
    if last is not None:
        try:
            request = LoadRequest.model_validate(last)
            await planner.plan(request)
            return request
        except (EloquioError, ValidationError) as error:
            model = last.get("model_path")
            logger.warning("last_model_cannot_be_loaded", model=model, error=str(error))
    return LoadRequest(model_path=BUILTIN_MODEL)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


def _built_page() -> Path | None:
    """The page that lies in this package, or that this checkout has built."""
    package = Path(__file__).parent
    for folder in (package / "page", package.parents[1] / "frontend" / "dist"):
        if (folder / "index.html").is_file():
            return folder
    return None


# Errors --------------------------------------------------------------------------------------


async def _render(
    request: Request, error: Exception, headers: Mapping[str, str] | None = None
) -> Response:
    assert isinstance(error, EloquioError)
    headers = dict(headers or {})
    if error.retry_after_seconds is not None:
        headers["retry-after"] = str(error.retry_after_seconds)
    if error.status == 501 or isinstance(error, ModelUnloaded):
        # The official clients would ask again by themselves: what can't be had, or a model that a
        # person has just unloaded, which that would load anew.
        headers["x-should-retry"] = "false"
    logger.info("request_refused", path=request.url.path, code=error.code, message=error.message)
    # In ASCII: a text that quotes a request may hold what UTF-8 can't, half a surrogate pair.
    body = json.dumps(body_for(request.url.path, error, request.scope["state"]["request_id"]))
    return Response(body, error.status, headers, media_type="application/json")


async def _render_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        reason = first.get("ctx", {}).get("error", first["msg"])
        return await _render(request, InvalidRequest(f"The body isn't JSON: {reason}."))
    if first["loc"] == ("body",) and not _is_json(request):
        return await _render(
            request,
            InvalidRequest(
                "The body isn't said to be JSON.",
                next_step="Send it with the header Content-Type: application/json.",
            ),
        )
    # The first part says where it stood: in the body, the query…
    where = ".".join(str(part) for part in first["loc"][1:])
    message = f"{where}: {first['msg']}" if where else str(first["msg"])
    return await _render(
        request, InvalidRequest(f"The request isn't right. {message}.", param=where or None)
    )


def _is_json(request: Request) -> bool:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return media_type == "application/json" or media_type.endswith("+json")


async def _render_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, EloquioError):
        # Raised while the body was read, which FastAPI tells as a body that can't be parsed.
        return await _render(request, error.__cause__)
    match error.status_code:
        case 404:
            return await _render(request, NotFound("There is nothing at this address."))
        case 405:
            refused = MethodNotAllowed(f"{request.method} can't be done at this address.")
            # Only the page's files come without.
            return await _render(request, refused, error.headers or {"allow": "GET, HEAD"})
        case _:
            return await _render(request, InvalidRequest(str(error.detail)), error.headers)
