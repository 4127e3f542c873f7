"""A request of another API, asked as one chat completion, and told in its own fields."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from eloquio.chat.asking import Asked, AskedLater
from eloquio.chat.request import asked_of
from eloquio.chat.schema import ChatRequest
from eloquio.errors import EloquioError, InvalidRequest
from eloquio.media.fetcher import Fetcher


def asking(body: dict[str, Any], names: Mapping[str, str], fetch: Fetcher | None) -> AskedLater:
    """What a chat's `body` asks of an engine; InvalidRequest at once for what a chat doesn't take.

    `names` are what the chat's fields are called in the request that the client sent.
    """
    with named_as(names):
        request = chat_request(body)

    async def asked() -> Asked:
        with named_as(names):
            return await asked_of(request, json.dumps(body).encode(), fetch)

    return asked


def chat_request(body: dict[str, Any]) -> ChatRequest:
    """What a chat knows of a `body` that was made here; InvalidRequest for what it doesn't take."""
    try:
        return ChatRequest.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidRequest(f"The request isn't right. {first['msg']}.", param=where) from error


@contextmanager
def named_as(names: Mapping[str, str]) -> Iterator[None]:
    """An error that names a field of the chat names the one it was made of."""
    try:
        yield
    except EloquioError as error:
        name, *_ = (error.param or "").split(".")
        error.param = names.get(name, error.param)
        raise
