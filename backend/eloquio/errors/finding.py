"""Finding a model by its name, and what its file turns out to be."""

from eloquio.errors.root import EloquioError


class ModelNotFound(EloquioError):
    """Nothing on this machine has this name."""

    status = 404
    type = "invalid_request_error"
    code = "model_not_found"
    next_step = "GET /v1/models lists what is here."


class ModelNotDownloaded(ModelNotFound):
    """A Hub id of which nothing lies in the local cache."""

    code = "model_not_downloaded"
    next_step = "Download it first; GET /v1/models lists what is here."


class NoModelLoaded(EloquioError):
    """The request names no model, and there is none that could be meant."""

    status = 409
    type = "invalid_request_error"
    code = "no_model_loaded"
    next_step = "POST /load with a model_path."


class ModelAmbiguous(EloquioError):
    """The name fits several models, or several are loaded and none was named."""

    status = 400
    type = "invalid_request_error"
    code = "model_ambiguous"
    next_step = "Name one of them."


class PathNotAllowed(EloquioError):
    """The path lies outside the folders that the person named."""

    status = 403
    type = "permission_error"
    code = "path_not_allowed"
    next_step = "Name its folder in ELOQUIO_MODEL_DIRS or with --model-dir, or move the file there."


class ModelFileMissing(EloquioError):
    """The path lies in an allowed folder, but nothing is there."""

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
    """A folder was named that holds no model."""

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
    """The file ends before what its own header announces."""

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
    """A model in several files, of which not all are there."""

    status = 400
    type = "invalid_request_error"
    code = "gguf_shard_missing"
    next_step = "Download the missing parts into the same folder."


class SafetensorsTruncated(ModelFileTruncated):
    """A safetensors file ends before what its own header announces."""

    code = "safetensors_truncated"


class SafetensorsInvalid(ModelFileInvalid):
    """Called .safetensors, but its header makes no sense: a web page, a pointer, another format."""

    code = "safetensors_invalid"
    next_step = "Download the file again; a saved web page or a Git LFS pointer looks like this."


class SafetensorsShardMissing(ModelShardMissing):
    """The index of a model names safetensors files that aren't all there."""

    code = "safetensors_shard_missing"


class ModelConfigInvalid(ModelFileInvalid):
    """A model's config.json, or an adapter's adapter_config.json, can't be read as such."""

    code = "model_config_invalid"


class PickleRefused(EloquioError):
    """The weights are there only as pickle, which runs whatever code was put into it."""

    status = 400
    type = "invalid_request_error"
    code = "pickle_refused"
    next_step = "Get the model as safetensors; or, if you trust who made it, send allow_pickle."


class RemoteCodeRefused(EloquioError):
    """The model needs Python code that its own repository brings, which nobody has allowed."""

    status = 400
    type = "invalid_request_error"
    code = "remote_code_refused"
    next_step = "Read that code; if you trust it, send trust_remote_code: true."


class AdapterBaseMissing(EloquioError):
    """An adapter doesn't say which model it was trained on, or that one can't be used here."""

    status = 400
    type = "invalid_request_error"
    code = "adapter_base_missing"
    next_step = "Put the model that it was trained on, as safetensors, into a model folder."


class ModelKindUnsupported(EloquioError):
    """A file that is a model of a kind that nothing here can run, or only a part of one."""

    status = 400
    type = "invalid_request_error"
    code = "model_kind_unsupported"
    next_step = "Name a whole chat model; GET /v1/models lists what is here."


class ModelCannotChat(EloquioError):
    """A model was asked for what it isn't made for: an embedding model for an answer, say."""

    status = 400
    type = "invalid_request_error"
    code = "model_cannot_chat"
    next_step = "Name a chat model; GET /v1/models lists what is here, with each model's task."


class ModelCannotEmbed(EloquioError):
    """The model isn't made for embeddings: it chats, say."""

    status = 400
    type = "invalid_request_error"
    code = "model_cannot_embed"
    next_step = "Load an embedding model, and name it."


class ModelCannotRerank(EloquioError):
    """The model isn't made for ranking documents: it chats, say."""

    status = 400
    type = "invalid_request_error"
    code = "model_cannot_rerank"
    next_step = "Load a reranker, and name it."


class ModelCannotTranscribe(EloquioError):
    """The model isn't made to write down what is said in a sound: it chats, say."""

    status = 400
    type = "invalid_request_error"
    code = "model_cannot_transcribe"
    next_step = "Load a transcription model, such as a Whisper, and name it."
