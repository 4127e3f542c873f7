"""Eloquio itself: what every error is, and those of the server as a whole."""

from typing import Any


class EloquioError(Exception):
    """The root of the catalogue.

    `evidence` is an engine's own last words: a log line, an exit status, the name of a signal.
    No absolute path, token or traceback may stand in any of the texts: they leave the machine.
    """

    status = 500
    type = "server_error"
    code = "unexpected_error"
    next_step: str | None = None

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        evidence: str | None = None,
        next_step: str | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.evidence = evidence
        self.retry_after_seconds = retry_after_seconds
        if next_step is not None:
            self.next_step = next_step

    def body(self) -> dict[str, Any]:
        """The OpenAI-shaped body: `message`, `type`, `code`, `param`, and what we add to it."""
        error: dict[str, Any] = {
            "message": self.message,
            "type": self.type,
            "code": self.code,
            "param": self.param,
        }
        if self.evidence:
            error["evidence"] = self.evidence
        if self.next_step:
            error["next_step"] = self.next_step
        return {"error": error}


class Unexpected(EloquioError):
    """A fault of ours: the traceback is in the log under the request's id."""

    code = "unexpected_error"
    next_step = "Look for the request's id in the server's log, and please report what it says."

    def __init__(self, message: str = "Something went wrong in Eloquio itself.") -> None:
        super().__init__(message)


class DatabaseUnreadable(EloquioError):
    """`eloquio.db` is damaged or may not be used: nothing can start on it."""

    code = "database_unreadable"
    next_step = (
        "Move eloquio.db, and the files beside it that begin so, out of Eloquio's home: the next "
        "start makes a new one. If a copy eloquio.before-….db lies there, rename it to eloquio.db."
    )


class ShuttingDown(EloquioError):
    """The server was told to end; what was under way ends with it."""

    status = 503
    code = "shutting_down"
    next_step = "Start Eloquio again."
