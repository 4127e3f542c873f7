"""The response object: what a client gets whole, and what a stream's first and last events hold."""

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eloquio.chat.responses.schema import ResponseRequest, ToolChoice
from eloquio.chat.responses.tools import function_tools
from eloquio.chat.usage import Usage
from eloquio.errors import EloquioError, EngineFault

Status = Literal["in_progress", "completed", "incomplete", "failed"]

# Why a chat completion was cut, in this API's words.
_CUT = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclass(frozen=True)
class Ending:
    """How a response stands: under way, or how it ended."""

    status: Status
    incomplete_reason: str | None = None
    error: EloquioError | None = None

    @classmethod
    def of(cls, finish_reason: str | None) -> "Ending":
        """By a chat completion's reason; EngineFault where there is none."""
        if finish_reason is None:
            raise EngineFault("The engine didn't say how its answer ended.")
        if finish_reason in _CUT:
            return cls("incomplete", _CUT[finish_reason])
        return cls("completed")


UNDER_WAY = Ending("in_progress")


class ResponseFrame:
    """What stays the same of a response from its first event to its last."""

    def __init__(self, request: ResponseRequest) -> None:
        self._model = request.model
        self._fixed = _told_back(request)

    def names(self, model: str | None) -> None:
        """The model that answers, by its own name."""
        self._model = model or self._model

    def response(
        self,
        ending: Ending,
        output: Sequence[Mapping[str, Any]] = (),
        usage: Usage | None = None,
    ) -> dict[str, Any]:
        reason = ending.incomplete_reason
        return self._fixed | {
            "model": self._model or "",
            "status": ending.status,
            "completed_at": int(time.time()) if ending.status == "completed" else None,
            "output": list(output),
            "incomplete_details": {"reason": reason} if reason else None,
            "error": _error(ending.error) if ending.error else None,
            "usage": usage.of_response() if usage else None,
        }


def _told_back(request: ResponseRequest) -> dict[str, Any]:
    reasoning = request.reasoning
    return {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response",
        "created_at": int(time.time()),
        "background": False,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": request.max_tool_calls,
        "metadata": request.metadata or {},
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "previous_response_id": None,
        "prompt_cache_key": request.prompt_cache_key,
        "reasoning": {"effort": reasoning.effort if reasoning else None, "summary": None},
        "safety_identifier": request.safety_identifier,
        "service_tier": "default",
        "store": False,
        "temperature": request.temperature,
        "text": _text(request),
        "tool_choice": _tool_choice(request.tool_choice),
        "tools": [tool.model_dump() for tool in function_tools(request)],
        "top_logprobs": request.top_logprobs or 0,
        "top_p": request.top_p,
        "truncation": "disabled",
        "user": request.user,
    }


def _text(request: ResponseRequest) -> dict[str, Any]:
    wanted = request.text.format if request.text else None
    shape = wanted.model_dump(by_alias=True, exclude_none=True) if wanted else {"type": "text"}
    return {"format": shape, "verbosity": "medium"}


def _tool_choice(choice: ToolChoice | None) -> object:
    """A word where it was one."""
    choice = choice or {"type": "auto"}
    return choice["type"] if len(choice) == 1 else choice


def _error(error: EloquioError) -> dict[str, Any]:
    """In this API the codes of an error within a response are a few; ours is beside it."""
    if error.status == 429:
        code = "rate_limit_exceeded"
    else:
        code = "invalid_prompt" if error.status < 500 else "server_error"
    return {**error.body()["error"], "code": code}
