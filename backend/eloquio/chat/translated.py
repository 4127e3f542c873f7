"""A request of another API, asked as one chat completion, and told in its own fields."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from eloquio.chat.asking import Asked, AskedLater
from eloquio.chat.request import asked_of_fields
from eloquio.chat.schema import ChatRequest
from eloquio.errors import EloquioError, InvalidRequest
from eloquio.media.pictures import PictureMaker


def asking(body: dict[str, Any], names: Mapping[str, str], pictures: PictureMaker) -> AskedLater:
    """What a chat's `body` asks of an engine, once it is wanted; raises InvalidRequest.

    `names` are what the chat's fields are called in the request that the client sent.
    """

    async def asked() -> Asked:
        # Of what size it is only its JSON would tell.
        request = await asyncio.to_thread(parsed, body, names)
        with named_as(names):
            return await asked_of_fields(request, body, pictures)

    return asked


def parsed(body: dict[str, Any], names: Mapping[str, str]) -> ChatRequest:
    """What a chat knows of a `body` that was made here; InvalidRequest for what it doesn't take."""
    try:
        with named_as(names):
            return ChatRequest.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = _own_name(".".join(map(str, first["loc"])), names)
        message = f"The request isn't right. {where}: {first['msg']}."
        raise InvalidRequest(message, param=where) from error


@contextmanager
def named_as(names: Mapping[str, str]) -> Iterator[None]:
    """An error that names a field of the chat names the one it was made of."""
    try:
        yield
    except EloquioError as error:
        if error.param is not None:
            error.param = _own_name(error.param, names)
        raise


def _own_name(param: str, names: Mapping[str, str]) -> str:
    return names.get(param.partition(".")[0], param)
