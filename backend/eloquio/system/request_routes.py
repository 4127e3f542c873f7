"""The last requests that engines answered, and how long each part of them took."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from eloquio.answers.exchange import RequestLog
from eloquio.errors import RequestNotFound
from eloquio.system.request_schema import RequestCard, RequestList, RequestReply

router = APIRouter(tags=["chat"])


def _request_log(request: Request) -> RequestLog:
    log: RequestLog = request.app.state.request_log
    return log


RequestLogNow = Annotated[RequestLog, Depends(_request_log)]


@router.get("/requests")
async def list_requests(
    log: RequestLogNow, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> RequestList:
    """The newest first, those under way among them. They hold nothing of what was said."""
    newest = list(log.newest())[:limit]
    return RequestList(data=[RequestCard.of(exchange) for exchange in newest])


@router.get("/requests/{request_id}")
async def get_request(request_id: str, log: RequestLogNow) -> RequestReply:
    """One of them, with each step of it where X-Trace-Level asked for that."""
    for exchange in log.newest():
        if exchange.id == request_id:
            return RequestReply.of(exchange)
    raise RequestNotFound("No request of that id is among the last ones.")
