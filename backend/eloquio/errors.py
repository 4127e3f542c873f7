"""The closed catalogue of what can go wrong, in words for the person who meets it.

An error is raised where its cause is known; one handler (`app.py`) renders it. `code` is stable and
is what a script may branch on; the message says what happened; `next_step` says what to do.
"""

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


class InvalidRequest(EloquioError):
    status = 400
    type = "invalid_request_error"
    code = "invalid_request"


class BodyTooLarge(EloquioError):
    status = 413
    type = "invalid_request_error"
    code = "body_too_large"
    next_step = "Shorten the conversation, or send smaller pictures."


class NotFound(EloquioError):
    status = 404
    type = "invalid_request_error"
    code = "not_found"


class MethodNotAllowed(EloquioError):
    status = 405
    type = "invalid_request_error"
    code = "method_not_allowed"
    next_step = "The Allow header names the methods of this address."


class NotImplementedHere(EloquioError):
    status = 501
    type = "invalid_request_error"
    code = "not_implemented"


# Who may ask ---------------------------------------------------------------------------------


class HostRefused(EloquioError):
    status = 403
    type = "permission_error"
    code = "host_not_allowed"
    next_step = "Ask by localhost or an IP address, or name the host in ELOQUIO_ALLOWED_HOSTS."


class OriginRefused(EloquioError):
    status = 403
    type = "permission_error"
    code = "cross_site_request"
    next_step = "A web page of another site may not drive Eloquio; use its own page or a script."


class KeyRequired(EloquioError):
    status = 401
    type = "authentication_error"
    code = "key_required"
    next_step = "Send the key as 'Authorization: Bearer …'; `eloquio key` prints it."


class KeyRefused(EloquioError):
    status = 401
    type = "authentication_error"
    code = "invalid_api_key"
    next_step = "Compare it with the one that `eloquio key` prints."


class TooManyAttempts(EloquioError):
    """Ten wrong keys in a minute from one address."""

    status = 429
    type = "rate_limit_error"
    code = "too_many_attempts"
    next_step = "Wait a minute, then send the key that `eloquio key` prints."


class PersonOnly(EloquioError):
    status = 403
    type = "permission_error"
    code = "person_only"
    next_step = "Sign in on the page and change it there."


# Finding a model -----------------------------------------------------------------------------


class ModelNotFound(EloquioError):
    status = 404
    type = "invalid_request_error"
    code = "model_not_found"
    next_step = "GET /v1/models lists what is here."


class ModelNotDownloaded(ModelNotFound):
    """A Hub id of which nothing lies in the local cache."""

    code = "model_not_downloaded"
    next_step = "Download it first; GET /v1/models lists what is here."


class NoModelLoaded(EloquioError):
    status = 409
    type = "invalid_request_error"
    code = "no_model_loaded"
    next_step = "POST /load with a model_path."


class ModelAmbiguous(EloquioError):
    status = 400
    type = "invalid_request_error"
    code = "model_ambiguous"
    next_step = "Name one of them."


class PathNotAllowed(EloquioError):
    status = 403
    type = "permission_error"
    code = "path_not_allowed"
    next_step = "Name its folder in ELOQUIO_MODEL_DIRS or with --model-dir, or move the file there."


class ModelFileMissing(EloquioError):
    status = 404
    type = "invalid_request_error"
    code = "file_not_found"
    next_step = "Check the spelling; GET /v1/models lists what is here."


class ModelFileUnreadable(EloquioError):
    """It is there, but the system refuses to read it: rights, or a failing disk."""

    status = 403
    type = "permission_error"
    code = "file_unreadable"
    next_step = "Give the user Eloquio runs as the right to read it, and check the disk."


class FolderWithoutModels(EloquioError):
    status = 400
    type = "invalid_request_error"
    code = "folder_without_models"
    next_step = "Name a .gguf file, or a folder that holds one."


class NotAModelFile(EloquioError):
    """Called .gguf, but isn't GGUF: a text, a web page saved by mistake, a pointer file."""

    status = 400
    type = "invalid_request_error"
    code = "not_a_gguf_file"
    next_step = "Download the file again; a saved web page or a Git LFS pointer looks like this."


class ModelFileTruncated(EloquioError):
    status = 400
    type = "invalid_request_error"
    code = "gguf_truncated"
    next_step = "Download it again; it was cut on the way."


class ModelFileInvalid(EloquioError):
    """GGUF by its first bytes, but its header makes no sense."""

    status = 400
    type = "invalid_request_error"
    code = "gguf_invalid"
    next_step = "Download it again or from another place."


class ModelShardMissing(EloquioError):
    status = 400
    type = "invalid_request_error"
    code = "gguf_shard_missing"
    next_step = "Download the missing parts into the same folder."


class ModelKindUnsupported(EloquioError):
    """A file that is a model of a kind that nothing here can run, or only a part of one."""

    status = 400
    type = "invalid_request_error"
    code = "model_kind_unsupported"


# Loading -------------------------------------------------------------------------------------


class ModelDoesNotFit(EloquioError):
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
    status = 409
    type = "invalid_request_error"
    code = "engine_busy"
    next_step = "Wait for the answers under way, or send force: true to end them."


class LoadCancelled(EloquioError):
    status = 499
    type = "invalid_request_error"
    code = "load_cancelled"
    next_step = "Load it again when it is wanted."


class ModelUnloaded(EloquioError):
    """An answer was under way when its model was unloaded."""

    status = 409
    type = "invalid_request_error"
    code = "model_unloaded"
    next_step = "Load the model again, and send the request once more."


class EngineMissing(EloquioError):
    status = 502
    code = "engine_missing"
    next_step = "Run scripts/start, which brings one, or set LLAMA_SERVER_PATH to its binary."


class EngineStartFailed(EloquioError):
    """It ended while starting, for a reason that none of the errors below names."""

    status = 502
    code = "engine_start_failed"
    next_step = "The engine's own words say why; `eloquio doctor` tries the engine itself."


class EngineLibraryMissing(EngineStartFailed):
    code = "engine_library_missing"


class EngineIllegalInstruction(EngineStartFailed):
    code = "engine_illegal_instruction"
    next_step = (
        "This llama-server was built for another processor: build one, with scripts/start --build."
    )


class EngineOutOfMemory(EngineStartFailed):
    code = "engine_out_of_memory"
    next_step = "Choose a smaller quant, a shorter context, a smaller KV type or fewer GPU layers."


class EngineArchitectureUnknown(EngineStartFailed):
    code = "architecture_unsupported"
    next_step = "A newer llama-server may know it: point LLAMA_SERVER_PATH at one."


class EngineRefusedFile(EngineStartFailed):
    code = "engine_refused_file"
    next_step = "The file may be damaged: download it again."


class EngineTemplateInvalid(EngineStartFailed):
    code = "chat_template_invalid"
    next_step = "Load without chat_template_override, or mend the template."


class EngineFlagUnknown(EngineStartFailed):
    code = "engine_flag_unknown"
    next_step = "Leave the option out, or use a llama-server that knows it."


class EngineSocketFailed(EngineStartFailed):
    code = "engine_socket_failed"
    next_step = "Check that ELOQUIO_HOME can be written, or choose another."


class EngineKilled(EngineStartFailed):
    """SIGKILL from outside: nearly always the system's out-of-memory killer."""

    code = "engine_killed"
    next_step = "The system may have run out of memory: choose a smaller model or context."


class EngineNoProgress(EngineStartFailed):
    status = 504
    code = "engine_no_progress"
    next_step = "Try again; if the disk is very slow, raise ELOQUIO_START_INACTIVITY_SECONDS."


# Answering -----------------------------------------------------------------------------------


class EngineCrashed(EloquioError):
    """The engine ended while it was serving."""

    status = 502
    code = "engine_crashed"
    next_step = "Send the request again: the engine is started anew."


class EngineUnavailable(EloquioError):
    """Failed again and again: not started once more before its back-off is over."""

    status = 503
    code = "engine_unavailable"
    next_step = "Load the model again to try at once, or wait."


class EngineUnreachable(EloquioError):
    status = 502
    code = "engine_unreachable"
    next_step = "Send the request again; if it stays so, unload the model and load it anew."


class EngineRejectedRequest(EloquioError):
    """The engine's own 4xx, in its own words."""

    status = 400
    type = "invalid_request_error"
    code = "engine_rejected_request"


class EngineFault(EloquioError):
    """The engine's own 5xx, in its own words."""

    status = 502
    code = "engine_error"
    next_step = "Send the request again; the server's log may say more."


class ContextExceeded(EloquioError):
    status = 400
    type = "invalid_request_error"
    code = "context_length_exceeded"
    next_step = "Shorten the conversation, or load the model with a larger max_seq_length."


class ModelCannotChat(EloquioError):
    status = 400
    type = "invalid_request_error"
    code = "model_cannot_chat"
    next_step = "Name a chat model; GET /v1/models lists what is here, with each model's task."


class DatabaseUnreadable(EloquioError):
    """`eloquio.db` is damaged or may not be used: nothing can start on it."""

    code = "database_unreadable"
    next_step = (
        "Move eloquio.db, and the files beside it that begin so, out of Eloquio's home: the next "
        "start makes a new one. If a copy eloquio.before-….db lies there, rename it to eloquio.db."
    )


class ShuttingDown(EloquioError):
    status = 503
    code = "shutting_down"
    next_step = "Start Eloquio again."
