import signal
from pathlib import Path

import pytest

from eloquio import errors
from eloquio.engines.exits import crash, ending, last_lines, start_failure, without_paths

LOGS = Path(__file__).parents[2] / "fixtures" / "engine_logs"
# What each of the real logs is taken for, and a piece of the line that has to be shown for it.
TOLD = {
    "adapter_architecture": (errors.AdapterRefused, "LoRA arch mismatch"),
    "adapter_as_model": (errors.EngineRefusedFile, "key not found in model"),
    "adapter_is_text": (errors.AdapterRefused, "failed to apply lora adapter"),
    "adapter_missing": (errors.AdapterRefused, "No such file or directory"),
    "adapter_shape": (errors.AdapterRefused, "maybe wrong base model?"),
    "architecture": (errors.EngineArchitectureUnknown, "unknown model architecture: 'novaa'"),
    "draft_truncated": (errors.DraftRefused, "failed to load draft model"),
    "file_empty": (errors.EngineFileTruncated, "failed to read magic"),
    "file_is_text": (errors.EngineRefusedFile, "invalid magic characters: '<!do'"),
    "file_missing": (errors.EngineFileLost, "No such file or directory"),
    "file_truncated": (errors.EngineFileTruncated, "not within the file bounds"),
    "format_version": (errors.QuantUnsupported, "only supports up to version 3"),
    "gpu_lost_sycl": (errors.GpuUnusable, "UR_RESULT_ERROR_DEVICE_LOST"),
    "gpu_too_new_for_the_build": (errors.GpuUnusable, "no kernel image is available"),
    "header_truncated": (errors.EngineFileTruncated, "failed to read key-value pairs"),
    "kv_type_without_flash_attention": (errors.EngineOptionRefused, "requires flash_attn"),
    "libraries_of_its_own_missing": (errors.EngineLibraryMissing, "no backends are loaded"),
    "library_missing_linux": (errors.EngineLibraryMissing, "libllama-server-impl.so"),
    "library_missing_macos": (errors.EngineLibraryMissing, "libllama.dylib"),
    "library_too_old": (errors.EngineLibraryMissing, "GLIBC_2.38"),
    "memory_compute_cuda": (errors.ComputeOutOfMemory, "failed to allocate compute buffers"),
    "memory_compute_metal": (errors.ComputeOutOfMemory, "Insufficient Memory"),
    "memory_compute_rocm_2024": (errors.ComputeOutOfMemory, "ROCm0 buffer of size 18035509504"),
    "memory_kv_cuda_2025": (errors.ContextOutOfMemory, "cudaMalloc failed: out of memory"),
    "memory_kv_processor": (errors.ContextOutOfMemory, "failed to allocate buffer for kv cache"),
    "memory_kv_rocm": (errors.ContextOutOfMemory, "failed to allocate buffer for kv cache"),
    "memory_mmap": (errors.EngineOutOfMemory, "mmap failed: Cannot allocate memory"),
    "memory_sycl": (errors.EngineOutOfMemory, "UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"),
    "memory_vulkan": (errors.EngineOutOfMemory, "ErrorOutOfDeviceMemory"),
    "memory_weights_cuda": (errors.EngineOutOfMemory, "unable to allocate CUDA0 buffer"),
    "memory_weights_processor": (errors.EngineOutOfMemory, "unable to allocate CPU buffer"),
    "option_unknown": (errors.EngineFlagUnknown, "--nonsense"),
    "option_value": (errors.EngineOptionRefused, "Unsupported cache type: wrong"),
    "option_without_value": (errors.EngineOptionRefused, "expected value for argument"),
    "projector_as_model": (errors.EngineRefusedFile, "CLIP cannot be used as main model"),
    "projector_missing": (errors.ProjectorRefused, "failed to load multimodal model"),
    "projector_of_another_model": (errors.ProjectorRefused, "n_embd = 8192"),
    "projector_unknown": (errors.ProjectorRefused, "unknown projector type"),
    "socket": (errors.EngineSocketFailed, "couldn't bind HTTP server socket"),
    "template_file_missing": (errors.EngineOptionRefused, "failed to open file"),
    "template_function": (errors.EngineTemplateInvalid, "Callee is not a function"),
    "template_raises": (errors.EngineTemplateInvalid, "Jinja Exception: no"),
    "template_syntax": (errors.EngineTemplateInvalid, "Parser Error: Expected }}"),
    "tensor_missing": (errors.EngineRefusedFile, "ffn_down.weight' not found"),
    "tensor_shape": (errors.EngineRefusedFile, "has wrong shape"),
    "tensor_type": (errors.QuantUnsupported, "invalid ggml type 77"),
    "tensor_type_removed": (errors.QuantUnsupported, "TYPE_Q4_0_4_4 REMOVED"),
}


def log(name: str) -> list[str]:
    build, *lines = (LOGS / f"{name}.txt").read_text().splitlines()
    assert build.startswith("# build ")
    return lines


@pytest.mark.parametrize("name", sorted(path.stem for path in LOGS.glob("*.txt")))
def test_a_real_log_is_told_as_its_cause_with_the_lines_that_show_it(name):
    expected, shown = TOLD[name]
    error = start_failure(1, log(name))
    assert type(error) is expected
    assert shown in error.evidence
    assert error.evidence.endswith("exit status 1")
    assert error.message[0].isupper()
    assert error.message.endswith(".")
    assert "{0}" not in error.message
    assert error.next_step
    assert len(error.evidence.splitlines()) <= 7
    for folder in ("/srv", "/Users", "/app", "/opt"):
        assert folder not in error.evidence + error.message


def test_every_log_that_is_awaited_is_there():
    assert {path.stem for path in LOGS.glob("*.txt")} == set(TOLD)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("llama-server: symbol lookup error: undefined symbol: ggml_foo", "engine_library_missing"),
        ("dyld[1]: Symbol not found: _ggml_foo", "engine_library_missing"),
        ("VCRUNTIME140_1.dll was not found", "engine_library_missing"),
        ("bash: llama-server: Exec format error", "engine_not_runnable"),
        ("error: unknown argument: --odd", "engine_flag_unknown"),
        ("unknown model architecture: 'nova'", "architecture_unsupported"),
        ("error loading model: unsupported model architecture: 'x'", "architecture_unsupported"),
        ("terminate called after throwing an instance of 'std::bad_alloc'", "engine_out_of_memory"),
        ("error: mmap failed: Cannot allocate memory", "engine_out_of_memory"),
        ("can't allocate 2303168640 Bytes of memory on device", "engine_out_of_memory"),
        ("failed to allocate Metal buffer of 9 bytes (out of memory)", "engine_out_of_memory"),
        ("MapViewOfFile failed: Not enough memory resources are available", "engine_out_of_memory"),
        ("failed to allocate buffer for rs cache", "engine_out_of_memory_context"),
        ("failed to allocate compute pp buffers", "engine_out_of_memory_compute"),
        ("failed to allocate buffer for lora adapter", "engine_out_of_memory_adapter"),
        (
            "draft model vocab type must match target model to use speculation",
            "draft_model_refused",
        ),
        ("RPC server version mismatch: 1.0.0", "rpc_server_failed"),
        ("ggml_metal_init: error: failed to initialize the Metal library", "gpu_unusable"),
        ("CUDA error: CUDA driver version is insufficient for the runtime", "gpu_unusable"),
        ("what():  vk::createInstance: ErrorIncompatibleDriver", "gpu_unusable"),
        ("chat template parsing error: unexpected token", "chat_template_invalid"),
        ("read error: Input/output error", "engine_file_lost"),
        ("unexpectedly reached end of file", "engine_file_truncated"),
    ],
)
def test_a_wording_of_other_builds_and_systems_has_its_cause(line, expected):
    error = start_failure(1, ["earlier", line])
    assert error.code == expected
    assert line in error.evidence


def test_the_part_that_ran_out_of_memory_is_named():
    memory = "ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory"
    projector = [memory, "srv    load_model: failed to load multimodal model, 'p.gguf'"]
    draft = [memory, "srv    load_model: failed to load draft model, 'd.gguf'"]
    assert type(start_failure(1, projector)) is errors.ProjectorOutOfMemory
    assert type(start_failure(1, draft)) is errors.DraftOutOfMemory
    assert issubclass(errors.DraftOutOfMemory, errors.EngineOutOfMemory)


@pytest.mark.parametrize(
    "line",
    [
        "0.00.1.2 W sched_reserve: failed to allocate compute buffers, out of memory",
        "warning: failed to mlock 501870592-byte buffer: Cannot allocate memory",
        "ggml_vulkan: Failed to allocate pinned memory (ErrorOutOfDeviceMemory)",
        "0.00.001.002 I llama: error loading model: is what an information may say",
    ],
)
def test_what_the_engine_went_on_after_is_no_cause(line):
    assert type(start_failure(1, [line])) is errors.EngineStartFailed


def test_a_projector_that_could_not_be_measured_is_not_taken_for_the_cause():
    error = start_failure(1, log("libraries_of_its_own_missing"))
    assert "libraries" in error.message


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (-signal.SIGILL, "engine_illegal_instruction", "signal SIGILL"),
        (0xC000001D, "engine_illegal_instruction", "exit status 0xC000001D"),
        (-signal.SIGKILL, "engine_killed", "signal SIGKILL"),
        (137, "engine_killed", "exit status 137, signal SIGKILL"),
        (-signal.SIGTERM, "engine_killed", "signal SIGTERM"),
        (-signal.SIGSEGV, "engine_aborted", "signal SIGSEGV"),
        (134, "engine_aborted", "exit status 134, signal SIGABRT"),
        (0xC0000005, "engine_aborted", "exit status 0xC0000005"),
        (-0x3FFFFFFB, "engine_aborted", "exit status 0xC0000005"),
        (0xC0000409, "engine_aborted", "exit status 0xC0000409"),
        (-signal.SIGBUS, "engine_file_lost", "signal SIGBUS"),
        (0xC0000135, "engine_library_missing", "exit status 0xC0000135"),
        (126, "engine_not_runnable", "exit status 126"),
        (127, "engine_not_runnable", "exit status 127"),
        (3, "engine_start_failed", "exit status 3"),
    ],
)
def test_an_ending_without_words_is_told_by_its_status(status, code, words):
    error = start_failure(status, ["loading"])
    assert error.code == code
    assert error.evidence == f"loading\n{words}"
    assert error.next_step


def test_an_abort_whose_reason_was_written_is_told_by_the_reason():
    error = start_failure(-signal.SIGABRT, log("memory_compute_metal"))
    assert type(error) is errors.ComputeOutOfMemory
    assert "ggml_print_backtrace" not in error.evidence
    assert "SIGABRT" in error.evidence


def test_a_failed_assertion_is_shown():
    line = "/build/ggml/src/ggml.c:1852: GGML_ASSERT(a->ne[0] == b->ne[0]) failed"
    error = start_failure(-signal.SIGABRT, [line, "#1 0x00007f in ggml_abort ()"])
    assert type(error) is errors.EngineAborted
    assert error.evidence.splitlines()[0] == "ggml.c:1852: GGML_ASSERT(a->ne[0] == b->ne[0]) failed"


def test_the_telling_lines_are_shown_and_not_merely_the_last():
    noise = [f"0.00.001.{n:03} I srv: information {n}" for n in range(20)]
    failure = "0.00.000.100 E llama: failed in the middle"
    assert last_lines([*noise[:10], failure, failure, *noise[10:]]) == "llama: failed in the middle"


@pytest.mark.parametrize(
    ("status", "lines", "words"),
    [
        (-signal.SIGSEGV, ["a", "b"], "signal SIGSEGV"),
        (-signal.SIGKILL, ["a"], "killed from outside"),
        (1, ["CUDA error: out of memory"], "ran out of memory"),
        (-signal.SIGABRT, ["error: Insufficient Memory (00000008)"], "ran out of memory"),
        (-signal.SIGBUS, ["a"], "disk failed"),
        (-signal.SIGABRT, ["CUDA error: unspecified launch failure"], "GPU failed"),
        (0xC0000005, ["a"], "0xC0000005"),
    ],
)
def test_a_crash_in_service_tells_what_happened_and_what_to_do(status, lines, words):
    error = crash(status, lines)
    assert error.code == "engine_crashed"
    assert words in error.message
    assert error.evidence == "\n".join([*lines, ending(status)])
    assert error.next_step


def test_memory_that_was_short_long_before_is_not_why_it_crashed():
    lines = ["cudaMalloc failed: out of memory", *(f"served {n}" for n in range(50))]
    assert "memory" not in crash(-signal.SIGSEGV, lines).message


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (-11, "signal SIGSEGV"),
        (1, "exit status 1"),
        (0xC0000005, "exit status 0xC0000005"),
        (-99, "signal 99"),
    ],
)
def test_an_ending_is_told_as_its_system_names_it(status, words):
    assert ending(status) == words


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("loading '/home/anna/x.gguf' now", "loading 'x.gguf' now"),
        ("failed to open:/home/anna/m.gguf", "failed to open:m.gguf"),
        ("C:\\Users\\anna\\x.gguf is gone", "x.gguf is gone"),
        ("see https://example.org/a/b/c", "see https://example.org/a/b/c"),
        ("a/b/c and 1/2", "a/b/c and 1/2"),
    ],
)
def test_an_absolute_path_is_cut_down_to_its_last_name(text, without):
    assert without_paths(text) == without
