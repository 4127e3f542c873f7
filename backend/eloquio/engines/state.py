"""The states of an engine: a closed union, the same in `/status`, OpenAPI and the page."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Phase = Literal["starting", "warming"]


class _State(BaseModel):
    model_config = ConfigDict(frozen=True)


class Stopped(_State):
    state: Literal["stopped"] = "stopped"


class Starting(_State):
    """`loaded_bytes` of `total_bytes` of the weights are in memory, as far as can be seen."""

    state: Literal["starting"] = "starting"
    phase: Phase = "starting"
    loaded_bytes: int = 0
    total_bytes: int = 0
    elapsed_seconds: float = 0.0


class Ready(_State):
    state: Literal["ready"] = "ready"
    pid: int
    load_seconds: float


class Stopping(_State):
    state: Literal["stopping"] = "stopping"


class Failed(_State):
    """`error` is the body of the error that ended it, as the API would render it."""

    state: Literal["failed"] = "failed"
    error: dict[str, Any]


EngineState = Annotated[
    Stopped | Starting | Ready | Stopping | Failed, Field(discriminator="state")
]
