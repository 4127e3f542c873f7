"""Loading and unloading, as far as the engine's own process isn't at fault."""

from eloquio.errors.root import EloquioError


class ModelDoesNotFit(EloquioError):
    """By the plan it needs more memory than is free; nothing was started."""

    status = 413
    type = "invalid_request_error"
    code = "model_does_not_fit"
    next_step = "Choose a smaller quant, a shorter context or a smaller KV type."


class NoEngineReady(EloquioError):
    """What `/ready` answers while no model could answer a question."""

    status = 503
    code = "no_engine_ready"
    next_step = "POST /load with a model_path, or wait for the load under way."


class EngineBusy(EloquioError):
    """It would have to be stopped while it is answering, and nobody said that it may."""

    status = 409
    type = "invalid_request_error"
    code = "engine_busy"
    next_step = "Wait for the answers under way, or send force: true to end them."


class LoadCancelled(EloquioError):
    """An unload came while the model was loading."""

    status = 499
    type = "invalid_request_error"
    code = "load_cancelled"
    next_step = "Load it again when it is wanted."


class ModelUnloaded(EloquioError):
    """An answer was under way, or a request waited for one, when its model was unloaded."""

    status = 409
    type = "invalid_request_error"
    code = "model_unloaded"
    next_step = "Load the model again, and send the request once more."


class EngineMissing(EloquioError):
    """There is no program to run the model with, or it can't be run on this machine."""

    status = 502
    code = "engine_missing"
    next_step = "Run scripts/start, which brings one, or set LLAMA_SERVER_PATH to its binary."


class WorkerMissing(EloquioError):
    """The model is one for the torch environment, which isn't there or isn't whole."""

    status = 502
    code = "worker_missing"
    next_step = (
        "Run scripts/start without --lite, which makes it in the background, or set"
        " ELOQUIO_WORKER_PYTHON to the Python of an environment with torch and transformers."
    )
