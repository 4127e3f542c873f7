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


class EngineRanOutOfMemory(EloquioError):
    """A step of the answer found no room on the device; the engine goes on."""

    status = 507
    type = "server_error"
    code = "engine_ran_out_of_memory"
    next_step = "Send a shorter request, or fewer at once; or load it with a smaller context."


class ContextExceeded(EloquioError):
    """The conversation is longer than the context that the model was loaded with."""

    status = 400
    type = "invalid_request_error"
    code = "context_length_exceeded"
    next_step = "Shorten the conversation, or load the model with a larger max_seq_length."


class QueueFull(EloquioError):
    """As many requests wait for the model as ELOQUIO_MAX_QUEUED allows."""

    status = 429
    type = "rate_limit_error"
    code = "queue_full"
    next_step = "Send it again later, or load the model with more slots (n_parallel)."


class RequestCancelled(EloquioError):
    """Somebody ended the request by its `cancel_id`, or unloaded what it waited for."""

    status = 499
    type = "invalid_request_error"
    code = "request_cancelled"
    next_step = "Send it again if it is still wanted."


class ToolsUnsupported(EloquioError):
    """The model's chat template has no place for tools: they would be dropped in silence."""

    status = 400
    type = "invalid_request_error"
    code = "tools_unsupported"
    next_step = (
        "Leave tools out, or load the model with a chat_template_override that has them, or "
        "another model."
    )


class ToolNotCalled(EloquioError):
    """The model ended its answer without a call, though `tool_choice` requires one."""

    status = 502
    code = "tool_not_called"
    next_step = (
        "Send the request again, raise max_tokens, or leave tool_choice to auto: some models "
        "call no tools."
    )


class ModelCannotSee(EloquioError):
    """The request holds a picture, and the model reads text only."""

    status = 400
    type = "invalid_request_error"
    code = "model_cannot_see"
    next_step = "Leave the pictures out, or load a vision model with its projector."


class ModelCannotHear(EloquioError):
    """The request holds sound, and the model reads none."""

    status = 400
    type = "invalid_request_error"
    code = "model_cannot_hear"
    next_step = "Leave the sound out, or load a model that hears."


class RequestNotFound(EloquioError):
    """No request has this id, or newer ones took its place."""

    status = 404
    type = "invalid_request_error"
    code = "request_not_found"
    next_step = "GET /v1/requests lists the last ones."
