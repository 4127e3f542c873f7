"""What is answered of a run."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from eloquio.chat.fold import Message
from eloquio.chat.runs.live_run import LiveRun
from eloquio.chat.runs.log import Run, RunStatus


class RunCard(BaseModel):
    """`created` and `ended` are in seconds since 1970."""

    id: str
    object: Literal["run"] = "run"
    status: RunStatus
    model: str
    created: int
    ended: int | None
    finish_reason: str | None
    usage: dict[str, Any] | None
    error: dict[str, Any] | None
    """Why it failed or was interrupted, with the fields of every error."""
    is_kept: bool = True
    """False while the disk can't be written: the run would not outlive the server."""

    @classmethod
    def of(cls, found: LiveRun | Run) -> "RunCard":
        return cls(**_fields(found))


class RunMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    reasoning_content: str | None
    tool_calls: list[dict[str, Any]] | None


class RunReply(RunCard):
    message: RunMessage
    """As far as it has come."""
    last_event: int = Field(ge=0)
    """The number of the last event; 0 before the first."""

    @classmethod
    def with_message(cls, found: LiveRun | Run, message: Message, last_event: int) -> "RunReply":
        told = RunMessage(
            content=message.content,
            reasoning_content=message.reasoning_content or None,
            tool_calls=message.tool_calls or None,
        )
        return cls(**_fields(found), message=told, last_event=last_event)


class RunList(BaseModel):
    object: Literal["list"] = "list"
    data: list[RunCard]
    has_more: bool


def _fields(found: LiveRun | Run) -> dict[str, Any]:
    run = found.run if isinstance(found, LiveRun) else found
    return {
        "id": run.id,
        "status": run.status,
        "model": run.model,
        "created": int(run.created),
        "ended": None if run.ended is None else int(run.ended),
        "finish_reason": run.finish_reason,
        "usage": run.usage,
        "error": run.error,
        "is_kept": not (isinstance(found, LiveRun) and found.is_failing_to_be_kept),
    }
