"""What happens to an engine that serves, and what it says to a request itself."""

from eloquio.errors.root import EloquioError


class EngineCrashed(EloquioError):
    """The engine ended while it was serving."""

    status = 502
    code = "engine_crashed"
    next_step = "Send the request again: the engine is started anew."


class EngineUnavailable(EloquioError):
    """It failed and isn't started again before its back-off is over, or it isn't ready yet."""

    status = 503
    code = "engine_unavailable"
    next_step = "Load the model again to try at once, or wait."


class EngineUnreachable(EloquioError):
    """The connection to the engine broke, though it didn't end."""

    status = 502
    code = "engine_unreachable"
    next_step = "Send the request again; if it stays so, unload the model and load it anew."


class EngineRejectedRequest(EloquioError):
    """The engine's own 4xx, in its own words."""

    status = 400
    type = "invalid_request_error"
    code = "engine_rejected_request"
    next_step = "Change what the engine's words name, and send the request again."


class EngineFault(EloquioError):
    """The engine's own 5xx, in its own words."""

    status = 502
    code = "engine_error"
    next_step = "Send the request again; the server's log may say more."


class ContextExceeded(EloquioError):
    """The conversation is longer than the context that the model was loaded with."""

    status = 400
    type = "invalid_request_error"
    code = "context_length_exceeded"
    next_step = "Shorten the conversation, or load the model with a larger max_seq_length."
