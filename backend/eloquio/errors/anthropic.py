"""Errors in the shape of Anthropic's API, for the routes that speak it."""

import re
from typing import Any

from eloquio.errors.root import EloquioError

_ROUTES = re.compile(r"^/(v1|api/inference)/messages(/|$)")
# Where the status says more than our own type of the error.
_TYPES = {
    404: "not_found_error",
    413: "request_too_large",
    503: "overloaded_error",
    504: "timeout_error",
}


def speaks_anthropic(path: str) -> bool:
    """Whether the route at this path belongs to Anthropic's API."""
    return _ROUTES.match(path) is not None


def body_for(path: str, error: EloquioError, request_id: str | None) -> dict[str, Any]:
    """The error's body in the shape of the API to which the route at `path` belongs."""
    return body_of(error, request_id) if speaks_anthropic(path) else error.body()


def body_of(error: EloquioError, request_id: str | None) -> dict[str, Any]:
    """The error's body, with Anthropic's name for its type; our own fields stand beside."""
    ours: dict[str, Any] = error.body()["error"]
    own_type = "api_error" if error.type == "server_error" else error.type
    kind = _TYPES.get(error.status, own_type)
    return {"type": "error", "error": {**ours, "type": kind}, "request_id": request_id}
