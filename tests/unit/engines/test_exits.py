import signal

import pytest

from eloquio.engines.exits import crash, ending, start_failure, without_paths


@pytest.mark.parametrize(
    ("status", "line", "code"),
    [
        (
            127,
            "error while loading shared libraries: libgomp.so.1: cannot open",
            "engine_library_missing",
        ),
        (-6, "dyld: Library not loaded: /opt/homebrew/lib/libggml.dylib", "engine_library_missing"),
        (1, "unknown model architecture: 'nova'", "architecture_unsupported"),
        (1, "error: invalid argument: --odd", "engine_flag_unknown"),
        (
            1,
            'error while handling argument "--cache-type-k": Unsupported cache type',
            "engine_flag_unknown",
        ),
        (1, "llama_kv_cache: failed to allocate buffer for kv cache", "engine_out_of_memory"),
        (
            1,
            "allocating 900 MiB on device 0: cudaMalloc failed: out of memory",
            "engine_out_of_memory",
        ),
        (
            1,
            "ggml_vulkan: Device memory allocation failed: ErrorOutOfDeviceMemory",
            "engine_out_of_memory",
        ),
        (
            -6,
            "terminate called after throwing an instance of 'std::bad_alloc'",
            "engine_out_of_memory",
        ),
        (1, "error: the supplied chat template is not supported: {% for", "chat_template_invalid"),
        (
            1,
            "couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080",
            "engine_socket_failed",
        ),
        (1, "tensor 'blk.0' data is not within the file bounds", "engine_refused_file"),
        (1, "error loading model: missing tensor 'output_norm.weight'", "engine_refused_file"),
        (-4, "AMX is not ready to be used!", "engine_illegal_instruction"),
        (-9, "loading", "engine_killed"),
        (3, "something odd", "engine_start_failed"),
    ],
)
def test_each_ending_has_its_cause_and_the_engines_words(status, line, code):
    error = start_failure(status, ["earlier", line])
    assert error.code == code
    assert line.split("/")[0][:20] in error.evidence
    assert ending(status) in error.evidence
    assert error.next_step
    assert "/opt" not in error.message


def test_a_crash_tells_the_signal_and_the_last_words():
    error = crash(-signal.SIGSEGV, ["a", "b"])
    assert "SIGSEGV" in error.message
    assert error.evidence == "a\nb\nsignal SIGSEGV"
    assert "memory" in crash(1, ["CUDA error: out of memory"]).message


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
