"""Errors in Anthropic's shape."""

import pytest

from eloquio.errors import (
    BodyTooLarge,
    EloquioError,
    EngineCrashed,
    EngineUnavailable,
    HostRefused,
    InvalidRequest,
    KeyRequired,
    NotFound,
    NotImplementedHere,
    QueueFull,
)
from eloquio.errors.anthropic import body_for, body_of


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidRequest, "invalid_request_error"),
        (KeyRequired, "authentication_error"),
        (HostRefused, "permission_error"),
        (NotFound, "not_found_error"),
        (BodyTooLarge, "request_too_large"),
        (QueueFull, "rate_limit_error"),
        (EngineUnavailable, "overloaded_error"),
        (EngineCrashed, "api_error"),
        (NotImplementedHere, "invalid_request_error"),
    ],
)
def test_an_error_has_anthropics_type_and_our_fields(error, kind):
    told = body_of(error("It went wrong.", param="x", evidence="a line"), "r1")
    assert told["type"] == "error"
    assert told["request_id"] == "r1"
    assert told["error"]["type"] == kind
    assert told["error"]["message"] == "It went wrong."
    assert told["error"]["code"] == error.code
    assert told["error"]["param"] == "x"
    assert told["error"]["evidence"] == "a line"
    assert told["error"]["next_step"] == error.next_step


@pytest.mark.parametrize(
    ("path", "is_anthropics"),
    [
        ("/v1/messages", True),
        ("/v1/messages/count_tokens", True),
        ("/api/inference/messages", True),
        ("/v1/messagesque", False),
        ("/v1/chat/completions", False),
        ("/messages", False),
    ],
)
def test_the_shape_is_that_of_the_route(path, is_anthropics):
    error = EloquioError("It went wrong.")
    told = body_for(path, error, "r1")
    assert ("request_id" in told) is is_anthropics
    assert is_anthropics or told == error.body()
