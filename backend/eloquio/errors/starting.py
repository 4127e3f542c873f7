"""An engine that ended while it was starting: why, by its exit status, its signal and its words.

Those that derive from another are closer names for it: a script that means them all compares each
code.
"""

from eloquio.errors.root import EloquioError


class EngineStartFailed(EloquioError):
    """It ended while starting, for a reason that none of the errors below names."""

    status = 502
    code = "engine_start_failed"
    next_step = "The engine's own words say why; `eloquio doctor` tries the engine itself."


class EngineNotRunnable(EngineStartFailed):
    """The engine's program is there, but the system won't run it: rights, or another machine's."""

    code = "engine_not_runnable"
    next_step = "Run scripts/start, which brings one, or set LLAMA_SERVER_PATH to another binary."


class EngineLibraryMissing(EngineStartFailed):
    """A shared library that the engine needs isn't there, or is another version than it needs."""

    code = "engine_library_missing"
    next_step = (
        "Install the library, or build an engine for this machine with scripts/start --build."
    )


class EngineIllegalInstruction(EngineStartFailed):
    """SIGILL: the engine was built for a processor that can more than this one."""

    code = "engine_illegal_instruction"
    next_step = (
        "This llama-server was built for another processor: build one, with scripts/start --build."
    )


class GpuUnusable(EngineStartFailed):
    """The GPU's driver is missing, too old, or lost the GPU; or the engine isn't made for it."""

    code = "gpu_unusable"
    next_step = "Update the GPU's driver, or load the model with gpu_layers 0."


class EngineOutOfMemory(EngineStartFailed):
    """There wasn't enough memory on the GPU or in the machine for the weights."""

    code = "engine_out_of_memory"
    next_step = "Choose a smaller quant, a shorter context, a smaller KV type or fewer GPU layers."


class ContextOutOfMemory(EngineOutOfMemory):
    """The weights found room, the context's KV cache didn't."""

    code = "engine_out_of_memory_context"
    next_step = "Load it with a shorter context, a smaller KV type or fewer slots."


class ComputeOutOfMemory(EngineOutOfMemory):
    """Weights and context found room, what the engine computes in didn't."""

    code = "engine_out_of_memory_compute"
    next_step = "Load it with a shorter context or fewer GPU layers."


class ProjectorOutOfMemory(EngineOutOfMemory):
    """The model found room, the projector that lets it see pictures or hear sound didn't."""

    code = "engine_out_of_memory_projector"
    next_step = "Load it with a shorter context or fewer GPU layers, which leaves the room for it."


class AdapterOutOfMemory(EngineOutOfMemory):
    """The model found room, an adapter didn't."""

    code = "engine_out_of_memory_adapter"
    next_step = "Load it without lora_adapters, or with a shorter context or fewer GPU layers."


class DraftOutOfMemory(EngineOutOfMemory):
    """The model found room, its draft model didn't."""

    code = "engine_out_of_memory_draft"
    next_step = "Load it without draft_model, or with a smaller one."


class EngineArchitectureUnknown(EngineStartFailed):
    """The model's architecture is newer than the engine, or nothing that it runs."""

    code = "architecture_unsupported"
    next_step = "A newer llama-server may know it: point LLAMA_SERVER_PATH at one."


class QuantUnsupported(EngineStartFailed):
    """The file holds tensors of a type that this engine doesn't know, or no longer."""

    code = "quant_unsupported"
    next_step = "Choose another quant of the model, or point LLAMA_SERVER_PATH at a newer engine."


class EngineRefusedFile(EngineStartFailed):
    """The model's file is damaged, or isn't what it should be."""

    code = "engine_refused_file"
    next_step = "The file may be damaged: download it again."


class EngineFileTruncated(EngineRefusedFile):
    """The file ends before what its header announces, seen only by the engine."""

    code = "engine_file_truncated"
    next_step = "Download it again; it was cut on the way."


class EngineFileLost(EngineRefusedFile):
    """The file was there when the load was planned, and could no longer be read by the engine."""

    code = "engine_file_lost"
    next_step = "Check that nothing moves or changes the file, and that its disk is sound."


class AdapterRefused(EngineStartFailed):
    """An adapter is damaged, or was made for another model."""

    code = "adapter_refused"
    next_step = "Load it without lora_adapters, or with one that was made for this model."


class DraftRefused(EngineStartFailed):
    """The draft model is damaged, or isn't one for this model."""

    code = "draft_model_refused"
    next_step = "Load it without draft_model, or with one that shares the model's vocabulary."


class ProjectorRefused(EngineStartFailed):
    """What lets the model see or hear is damaged, of another model, or unknown to the engine."""

    code = "projector_refused"
    next_step = "Put the projector that belongs to this model beside it, or take this one away."


class LoaderRefused(EngineStartFailed):
    """The loader that was asked for by name can't load this model."""

    code = "loader_refused"
    next_step = "Leave engine out, or send engine: transformers."


class EngineTemplateInvalid(EngineStartFailed):
    """The chat template can't be parsed, or fails at its first use."""

    code = "chat_template_invalid"
    next_step = "Load without chat_template_override, or mend the template."


class EngineFlagUnknown(EngineStartFailed):
    """An option was asked for that this engine doesn't have."""

    code = "engine_flag_unknown"
    next_step = "Leave the option out, or use a llama-server that knows it."


class EngineOptionRefused(EngineFlagUnknown):
    """The engine has the option, but not with this value or together with the others."""

    code = "engine_option_refused"
    next_step = "Give the option another value, or leave it out."


class EngineSocketFailed(EngineStartFailed):
    """The engine couldn't listen where it was told to, or another server answers there."""

    code = "engine_socket_failed"
    next_step = "Check that ELOQUIO_HOME can be written, or choose another."


class RpcServerFailed(EngineStartFailed):
    """A machine that was named in rpc_servers doesn't answer as this engine needs it."""

    code = "rpc_server_failed"
    next_step = "Start the same build of ggml-rpc-server there, or load without rpc_servers."


class EngineKilled(EngineStartFailed):
    """Ended from outside: with SIGKILL, nearly always by the system's out-of-memory killer."""

    code = "engine_killed"
    next_step = "The system may have run out of memory: choose a smaller model or context."


class EngineAborted(EngineStartFailed):
    """It ended by a fault of its own: an assertion that failed, or memory it may not touch."""

    code = "engine_aborted"
    next_step = (
        "Load it with other options; if it stays so, another build of llama-server may do better."
    )


class EngineNoProgress(EngineStartFailed):
    """It didn't end, but showed no sign of life for too long: no line, no computing, no reading."""

    status = 504
    code = "engine_no_progress"
    next_step = "Try again; if the disk is very slow, raise ELOQUIO_START_INACTIVITY_SECONDS."
