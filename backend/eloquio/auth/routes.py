"""Signing a browser in and out. Mounted at the root only: a session is the page's, not an API's."""

from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from eloquio.auth.door import KeyDoor
from eloquio.auth.page import sign_in_page
from eloquio.auth.sessions import COOKIE, LIFETIME_SECONDS
from eloquio.errors import EloquioError, InvalidRequest
from eloquio.guard import SIGN_IN_PATH, SIGN_IN_REFERRER

router = APIRouter(tags=["auth"])

_LONGEST_FORM_BYTES = 4096


def _door(request: Request) -> KeyDoor | None:
    door: KeyDoor | None = request.app.state.door
    return door


Door = Annotated[KeyDoor | None, Depends(_door)]


@router.post(
    SIGN_IN_PATH,
    status_code=303,
    response_class=RedirectResponse,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/x-www-form-urlencoded": {
                    "schema": {
                        "type": "object",
                        "properties": {"key": {"type": "string"}},
                        "required": ["key"],
                    }
                }
            },
        }
    },
)
async def sign_in(request: Request, door: Door) -> Response:
    """Take the key from the sign-in form, and give the browser a cookie that stands for it."""
    answer = RedirectResponse("/", status_code=303)
    if door is None:
        return answer
    try:
        session = door.sign_in(await _posted_key(request), address=_address(request))
    except EloquioError as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return _page_again(error)
    answer.set_cookie(
        COOKIE,
        session,
        max_age=LIFETIME_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@router.delete(SIGN_IN_PATH, status_code=204, response_class=Response)
async def sign_out(request: Request) -> Response:
    """Take the cookie back from this browser."""
    answer = Response(status_code=204)
    answer.delete_cookie(
        COOKIE, httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )
    return answer


def _page_again(error: EloquioError) -> Response:
    name, value = (part.decode() for part in SIGN_IN_REFERRER)
    headers = {name: value, "cache-control": "no-store"}
    if error.retry_after_seconds is not None:
        headers["retry-after"] = str(error.retry_after_seconds)
    return HTMLResponse(sign_in_page(error), status_code=error.status, headers=headers)


async def _posted_key(request: Request) -> str:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LONGEST_FORM_BYTES:
            raise InvalidRequest("A key is shorter than what was sent.", param="key")
    fields = parse_qs(body.decode("utf-8", "replace"))
    return fields.get("key", [""])[0].strip()


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
