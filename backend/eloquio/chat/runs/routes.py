"""Runs: started here, read by any number of readers, ended by nobody's leaving."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import StringConstraints

from eloquio import sse
from eloquio.chat.bodies import JsonRoute
from eloquio.chat.runs import events
from eloquio.chat.runs.runs import Runs
from eloquio.chat.runs.schema import RunCard, RunList, RunReply
from eloquio.chat.schema import ChatRequest

router = APIRouter(tags=["runs"], route_class=JsonRoute)

_STREAM = sse.described(
    "Chunks of a chat completion with their numbers as ids, then `[DONE]`; or one error where the "
    "run came to no end of its own."
)
_ALREADY: dict[int | str, dict[str, Any]] = {
    200: {"model": RunCard, "description": "The run that has this Idempotency-Key already."}
}


def _runs(request: Request) -> Runs:
    runs: Runs = request.app.state.runs
    return runs


RunsNow = Annotated[Runs, Depends(_runs)]
RunId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Number = Annotated[int, Query(ge=0, lt=2**63)]


@router.post("/runs", status_code=201, responses=_ALREADY)
async def create_run(
    body: ChatRequest,
    request: Request,
    response: Response,
    runs: RunsNow,
    idempotency_key: Annotated[RunId | None, Header()] = None,
) -> RunCard:
    """Start a run: a chat completion that goes on when its reader leaves, and is kept.

    An `Idempotency-Key` is the run's id: who didn't hear the answer asks again with the same one,
    and gets the run that there is.
    """
    created = await runs.create(body, await request.body(), idempotency_key)
    if not created.is_new:
        response.status_code = 200
    return RunCard.of(created.run)


@router.get("/runs")
async def list_runs(
    runs: RunsNow,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    before: str | None = None,
) -> RunList:
    """The newest first; `before` is the id of the last one of the page before."""
    found = await runs.shelf.newest(limit + 1, before)
    return RunList(data=[RunCard.of(run) for run in found[:limit]], has_more=len(found) > limit)


@router.get("/runs/{run_id}")
async def get_run(run_id: str, runs: RunsNow) -> RunReply:
    """A run, with its message as far as it has come."""
    found = await runs.shelf.find(run_id)
    message, last_event = await runs.shelf.message(found), await runs.shelf.last_number(found)
    return RunReply.with_message(found, message, last_event)


@router.get("/runs/{run_id}/events", response_class=StreamingResponse, responses=_STREAM)
async def read_events(
    run_id: str,
    runs: RunsNow,
    after: Number = 0,
    last_event_id: Annotated[int | None, Header(ge=0, lt=2**63)] = None,
) -> StreamingResponse:
    """The run's events from its start or after one, and then as they come, until it ends.

    The header comes before `after`: by it a browser goes on where it was, at the same address.
    """
    number = after if last_event_id is None else last_event_id
    found = await runs.shelf.find(run_id)
    await runs.shelf.refuse_lost(found, number)
    return StreamingResponse(events.stream(runs.shelf, found, number), headers=sse.HEADERS)


@router.post("/runs/{run_id}/cancel")
async def cancel_run(run_id: str, runs: RunsNow) -> RunCard:
    """End a run. One that has ended stays as it is."""
    return RunCard.of(await runs.cancel(run_id))


@router.post("/runs/{run_id}/continue")
async def continue_run(run_id: str, runs: RunsNow) -> RunCard:
    """Let the model go on where a run was cancelled, was interrupted, failed or was too long."""
    return RunCard.of(await runs.continue_(run_id))


@router.delete("/runs/{run_id}", status_code=204)
async def delete_run(run_id: str, runs: RunsNow) -> Response:
    """End a run and forget it."""
    await runs.delete(run_id)
    return Response(status_code=204)
