import signal

import pytest

from eloquio.engines.kinds.blame import Blame, blamed

PROJECTOR = Blame("projector", "--mmproj")
FLASH_ATTENTION = Blame("flash_attention", "--flash-attn")
COMMAND = [
    ("--model", "/m/clip-chat-7b.gguf"),
    ("--log-colors", "off"),
    ("--flash-attn", "on"),
    ("--cache-type-k", "q8_0"),
    ("--fit", "off"),
    ("--mmproj", "/m/mmproj-F16.gguf"),
]
WITHOUT_PROJECTOR = [option for option in COMMAND if option[0] != "--mmproj"]
PROJECTOR_IS_LOADING = [
    "srv    load_model: loading model 'clip-chat-7b.gguf'",
    "clip_model_loader: model name:   Vision",
    "clip_ctx: CLIP using CUDA0 backend",
]


@pytest.mark.parametrize(
    ("lines", "option"),
    [
        (["error: invalid argument: --log-colors"], "--log-colors"),
        (["error: invalid argument: --log_colors"], "--log-colors"),
        # Builds whose --log-colors takes no value take the value for an argument of its own.
        (["error: invalid argument: off"], "--log-colors"),
        (["error: unknown argument: --fit", "usage: llama-server [options]"], "--fit"),
        (
            ['error while handling argument "--cache-type-k": Unsupported cache type: q8_0'],
            "--cache-type-k",
        ),
        (["error: invalid argument: on"], "--flash-attn"),
    ],
)
def test_an_option_is_blamed_when_it_or_its_value_is_refused(lines, option):
    assert blamed(lines, 1, COMMAND) == Blame("option", option)


def test_a_refused_argument_that_is_not_of_the_command_line_blames_nothing():
    assert blamed(["error: invalid argument: --odd"], 1, COMMAND) is None


@pytest.mark.parametrize(
    ("status", "lines"),
    [
        (
            1,
            [
                "0.01.107 E clip_init: failed to load model 'mmproj-F16.gguf': clip: x",
                "0.01.107 E mtmd_init_from_file: error: Failed to load CLIP model from x.gguf",
                "0.01.107 E srv    load_model: failed to load multimodal model, 'mmproj-F16.gguf'",
                "0.01.112 E srv  llama_server: exiting due to model loading error",
            ],
        ),
        (1, ["clip_init: failed to load model 'x.gguf': load_hparams: unknown projector type: o"]),
        (1, ["gguf_init_from_file: failed to open GGUF file 'mmproj-F16.gguf' (No such file)"]),
        (
            -signal.SIGABRT,
            [
                "mtmd_init_from_file: error: mismatch between text model (n_embd = 5120) and mmproj"
                " (n_embd = 2560)",
            ],
        ),
        (
            -signal.SIGSEGV,
            [
                *PROJECTOR_IS_LOADING,
                "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 840.00 MiB on device 0:"
                " cudaMalloc failed: out of memory",
                "#3 0x00007f in clip_model_loader::load_tensors ()",
            ],
        ),
        (-signal.SIGABRT, ["/src/tools/mtmd/clip.cpp:2443: GGML_ASSERT(buffer) failed"]),
        (-signal.SIGSEGV, PROJECTOR_IS_LOADING),
        (128 + signal.SIGSEGV, PROJECTOR_IS_LOADING),
        (0xC0000005, PROJECTOR_IS_LOADING),
    ],
)
def test_the_projector_is_blamed_when_it_fails_or_the_engine_dies_in_it(status, lines):
    assert blamed(lines, status, COMMAND) == PROJECTOR
    assert blamed(lines, status, WITHOUT_PROJECTOR) is None


@pytest.mark.parametrize(
    ("status", "lines"),
    [
        # Memory that ran out for the weights.
        (
            1,
            [
                "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9000.00 MiB on device 0:"
                " cudaMalloc failed: out of memory",
                "llama_model_load: error loading model: unable to allocate CUDA0 buffer",
                "srv    load_model: failed to load model, 'clip-chat-7b.gguf'",
            ],
        ),
        # A model whose name only sounds like it.
        (1, ["common_init_from_params: failed to load model 'my clip model.gguf'"]),
        (-signal.SIGSEGV, ["print_info: general.name     = Clip Chat 7B"]),
        # The projector's memory could not be measured, and then the model itself failed.
        (
            1,
            [
                "0.00.008 E srv    load_model: [mtmd] failed to get memory usage of mmproj",
                "0.00.009 E llama_model_load: error loading model: missing tensor 'output.weight'",
                "0.00.009 E srv    load_model: failed to load model, 'clip-chat-7b.gguf'",
            ],
        ),
        (
            1,
            [
                "7.34.1 E mtmd_get_memory_usage: error: Failed to load CLIP model from m.gguf",
                "7.34.1 E llama_model_load_from_file_impl: no backends are loaded.",
            ],
        ),
        # Killed from outside, or made for another processor: not the projector's doing.
        (-signal.SIGKILL, PROJECTOR_IS_LOADING),
        (-signal.SIGILL, PROJECTOR_IS_LOADING),
        (1, PROJECTOR_IS_LOADING),
        # It had been loaded, and the engine went on.
        (-signal.SIGSEGV, [*PROJECTOR_IS_LOADING, *(f"slot {n}: new slot" for n in range(8))]),
    ],
)
def test_the_projector_is_not_blamed_for_what_others_did(status, lines):
    assert blamed(lines, status, COMMAND) is None


@pytest.mark.parametrize(
    ("status", "lines"),
    [
        (
            -signal.SIGABRT,
            ["/src/ggml/src/ggml-cuda/fattn.cu:110: fatal error", "#1 0x00 in abort ()"],
        ),
        (
            -signal.SIGABRT,
            [
                "ERROR: CUDA kernel flash_attn_ext_f16 has no device code compatible with CUDA"
                " arch 700.",
            ],
        ),
        (1, ["0.01.2 E ggml_metal: failed to compile 'kernel_flash_attn_ext_f16_dk96_dv96'"]),
        (-signal.SIGABRT, ["ggml_opencl: no flash_attn config for DK=72 DV=72"]),
        (-signal.SIGSEGV, ["main: warming up", "#4 0x00007f in ggml_cuda_flash_attn_ext ()"]),
    ],
)
def test_flash_attention_is_blamed_when_it_fails_or_the_engine_dies_in_it(status, lines):
    assert blamed(lines, status, WITHOUT_PROJECTOR) == FLASH_ATTENTION
    assert blamed(lines, status, []) == FLASH_ATTENTION
    assert blamed(lines, status, [("--flash-attn", "off")]) is None
    assert blamed(lines, status, [("-fa", "off")]) is None


@pytest.mark.parametrize(
    ("status", "lines"),
    [
        (-signal.SIGSEGV, ["llama_context: flash_attn            = auto"]),
        (1, ["0.00.4 I llama_context: flash_attn = enabled", "0.00.5 E srv: out of memory"]),
        (
            1,
            ["warmup: WARNING: flash attention not supported by CUDA0, memory usage will increase"],
        ),
        # They fail because it is off: to leave it out would help nobody.
        (1, ["llama_init_from_model: quantized V cache requires flash_attn to be enabled"]),
        (1, ["error: quantized V cache was requested, but this requires Flash Attention"]),
        (1, ["common_init_from_params: failed to load model 'flash-attn-7b.gguf'"]),
    ],
)
def test_flash_attention_is_not_blamed_for_being_mentioned(status, lines):
    assert blamed(lines, status, WITHOUT_PROJECTOR) is None


def test_an_engine_that_said_nothing_blames_nothing():
    assert blamed([], -signal.SIGSEGV, COMMAND) is None
