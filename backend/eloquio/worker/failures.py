"""What a worker answers when it can't do what was asked, in the shape that llama-server has."""

from typing import Any


class RequestFailed(Exception):
    """`type` and the extra fields are what the backend tells its own errors by."""

    status = 400
    type = "invalid_request_error"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param

    def body(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.status, "message": self.message, "type": self.type}
        if self.param is not None:
            error["param"] = self.param
        return {"error": error}


class NotHere(RequestFailed):
    """What this model or its library has no way to do."""

    status = 501
    type = "not_supported_error"


class StillLoading(RequestFailed):
    status = 503
    type = "unavailable_error"


class OutOfMemory(RequestFailed):
    """The device had no room for a step; the worker goes on."""

    status = 507
    type = "out_of_memory_error"


class GenerationFailed(RequestFailed):
    """The library raised in the middle of a step; the worker goes on."""

    status = 500
    type = "server_error"


class PromptTooLong(RequestFailed):
    type = "exceed_context_size_error"

    def __init__(self, needed: int, held: int, *, param: str = "messages") -> None:
        super().__init__(
            f"the request needs {needed} tokens and the context holds {held}", param=param
        )
        self._needed = needed
        self._held = held

    def body(self) -> dict[str, Any]:
        body = super().body()
        body["error"] |= {"n_prompt_tokens": self._needed, "n_ctx": self._held}
        return body


class LoadFailed(Exception):
    """Why a model can't be loaded; `cause` is one of a closed list, which the backend knows."""

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause
        self.message = message


def is_out_of_memory(words: str) -> bool:
    """Whether a library's words say that a device had no room."""
    words = words.lower()
    return "out of memory" in words or "can't allocate memory" in words
