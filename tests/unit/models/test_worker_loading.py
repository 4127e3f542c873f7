"""What a load of safetensors or of an adapter becomes, and what it refuses."""

import pytest

from eloquio.engines.devices import Device
from eloquio.engines.inventory import Inventory
from eloquio.engines.spec import Sampling
from eloquio.errors import (
    InvalidRequest,
    ModelAmbiguous,
    NotImplementedHere,
    PickleRefused,
    RemoteCodeRefused,
)
from eloquio.models import describe, loading, worker_loading
from eloquio.models.loading import Planner
from eloquio.models.schema import LoadRequest
from eloquio.store.preferences import WorkerEnv
from eloquio.worker_plan import AdapterPlan
from fixtures.gguf_files import write_model
from fixtures.safetensors_files import (
    GEMMA_VISION,
    LLAMA,
    WHISPER,
    write_adapter_folder,
    write_folder,
    write_json,
)

pytestmark = pytest.mark.anyio

GPU = Device("CUDA0", "NVIDIA L4", 24 * 2**30, 20 * 2**30)


@pytest.fixture
def planner(catalog, settings, tmp_path):
    """Of a machine without a llama-server and without a GPU: neither is needed here."""
    without = settings.model_copy(update={"llama_server_path": tmp_path / "none"})
    return Planner(catalog, Inventory(without))


@pytest.fixture(autouse=True)
def features(monkeypatch):
    """The processor's, as the test wants them: one that computes in 16 bits."""
    found = {"avx2", "avx512_bf16"}
    monkeypatch.setattr(worker_loading, "processor_features", lambda: frozenset(found))
    return found


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(loading, "nvidia_devices", lambda: [GPU])


async def planned(planner, model, **fields):
    return await planner.plan(LoadRequest(model_path=model, **fields))


async def test_a_folder_becomes_a_workers_plan(planner, folder):
    write_folder(folder / "org/mine")

    spec = await planned(planner, "org/mine")

    assert (spec.kind, spec.task, spec.model) == ("worker", "chat", "org/mine")
    assert (spec.context_length, spec.native_context_length) == (2048, 2048)
    assert (spec.memory.device, spec.base_model, spec.warnings) == ("cpu", None, ())
    plan = spec.worker
    assert (plan.model_path, plan.kind) == (str(folder / "org/mine"), "text")
    assert (plan.loader, plan.load_in_4bit, plan.device, plan.slots) == ("auto", False, "cpu", 8)
    assert not plan.trust_remote_code
    assert not plan.allow_pickle


async def test_what_was_asked_is_in_the_plan(planner, folder):
    write_folder(folder / "mine")

    spec = await planned(
        planner,
        "mine",
        engine="transformers",
        max_seq_length=1024,
        n_parallel=2,
        chat_template_override="{{ x }}",
    )

    assert (spec.context_length, spec.options.context_length) == (1024, 1024)
    assert (spec.worker.loader, spec.worker.slots) == ("transformers", 2)
    assert spec.worker.chat_template == "{{ x }}"
    assert spec.memory_at(512).kv_bytes == spec.memory.kv_bytes // 2


async def test_a_long_context_that_nobody_asked_for_is_shortened_and_that_said(planner, folder):
    write_folder(folder / "mine", LLAMA | {"max_position_embeddings": 131_072})

    shortened = await planned(planner, "mine")
    asked = await planned(planner, "mine", max_seq_length=131_072)

    assert shortened.context_length == 32_768
    assert "a context of 32768 tokens of the 131072" in shortened.warnings[0]
    assert (asked.context_length, asked.warnings) == (131_072, ())


async def test_recommended_sampling_is_the_repositorys_own_before_the_familys(planner, folder):
    own = {"generation_config.json": {"temperature": 0.25, "top_k": 7}}
    write_folder(folder / "qwen3-own", files=own)
    write_folder(folder / "qwen3")
    write_folder(folder / "greedy", files={"generation_config.json": {"do_sample": False}})
    write_folder(folder / "unknown", files={"generation_config.json": "no json"})

    mine, family = await planned(planner, "qwen3-own"), await planned(planner, "qwen3")

    assert (mine.sampling.temperature, mine.sampling.top_k) == (0.25, 7)
    assert family.sampling.temperature not in (None, 0.25)
    assert mine.sampling.top_p == family.sampling.top_p is not None
    assert (await planned(planner, "greedy")).worker.temperature == 0
    assert (await planned(planner, "unknown")).sampling == Sampling()


async def test_control_tokens_are_those_of_the_tokenizer_and_of_the_template(planner, folder):
    decoder = {
        "1": {"content": "<|im_end|>", "special": True},
        "2": {"content": "<tool_call>", "special": False},
        "3": {"content": "plain", "special": False},
    }
    tokenizer = '{"added_tokens": [{"content": "[MARK]", "special": true}], "model": broken'
    files = {
        "tokenizer_config.json": {
            "added_tokens_decoder": decoder,
            "chat_template": [{"name": "default", "template": "<|own_turn|>"}],
        },
        "tokenizer.json": tokenizer,
    }
    write_folder(folder / "mine", files=files)

    spec = await planned(planner, "mine")

    assert spec.control_tokens == ("<|im_end|>", "<|own_turn|>", "[MARK]")


# What is refused ---------------------------------------------------------------------------------


async def test_each_form_is_run_by_its_own_engine(planner, folder):
    write_folder(folder / "tensors")

    with pytest.raises(InvalidRequest, match="llama_server runs GGUF only") as refused:
        await planned(planner, "tensors", engine="llama_server")
    assert refused.value.param == "engine"
    with pytest.raises(NotImplementedHere):
        await planned(planner, "tensors", engine="remote")


async def test_gguf_is_not_for_the_worker(catalog, settings, folder):
    write_model(folder / "one.gguf")
    planner = Planner(catalog, Inventory(settings))

    for engine in ("transformers", "unsloth"):
        with pytest.raises(InvalidRequest, match=f"GGUF, which {engine} doesn't run") as refused:
            await planned(planner, "one", engine=engine)
        assert refused.value.param == "engine"


@pytest.mark.parametrize(
    ("field", "value"),
    [("extra_args", ["--mlock"]), ("rpc_servers", ["a:1"]), ("draft_model", "x.gguf")],
)
async def test_what_only_llama_server_can_do_is_refused(planner, folder, field, value):
    write_folder(folder / "mine")

    with pytest.raises(InvalidRequest, match=f"{field} is for GGUF") as refused:
        await planned(planner, "mine", **{field: value})
    assert refused.value.param == field


async def test_what_only_tunes_llama_server_is_said_to_have_no_effect(planner, folder):
    write_folder(folder / "mine")

    spec = await planned(
        planner, "mine", cache_type_kv="q8_0", gpu_layers=5, trust_remote_code=True
    )

    told = " ".join(spec.warnings)
    for field in ("cache_type_kv", "gpu_layers", "trust_remote_code"):
        assert f"{field} has no effect" in told


async def test_pickle_is_taken_only_by_consent(planner, folder):
    write_json(folder / "mine/config.json", LLAMA)
    (folder / "mine/pytorch_model.bin").write_bytes(bytes(100))

    with pytest.raises(PickleRefused, match="mine") as refused:
        await planned(planner, "mine", trust_remote_code=True)
    assert refused.value.param == "allow_pickle"
    assert "allow_pickle" in refused.value.next_step
    assert (await planned(planner, "mine", allow_pickle=True)).worker.allow_pickle


async def test_a_repositorys_code_runs_only_by_consent(planner, folder):
    brings = {"auto_map": {"AutoModelForCausalLM": "modeling.Own"}}
    write_folder(folder / "own", LLAMA | brings | {"architectures": ["OwnForCausalLM"]})
    write_folder(folder / "known", LLAMA | brings)

    with pytest.raises(RemoteCodeRefused, match="own") as refused:
        await planned(planner, "own")
    assert refused.value.param == "trust_remote_code"
    assert (await planned(planner, "own", trust_remote_code=True)).worker.trust_remote_code
    known = await planned(planner, "known")
    assert not known.worker.trust_remote_code
    assert "own code isn't run" in known.warnings[0]


# 4 bits ------------------------------------------------------------------------------------------


async def test_without_a_gpu_4_bits_are_only_spoken_of_to_who_asked(planner, folder):
    write_folder(folder / "mine")

    unasked, asked = (
        await planned(planner, "mine"),
        await planned(planner, "mine", load_in_4bit=True),
    )

    assert (unasked.worker.load_in_4bit, unasked.warnings) == (False, ())
    assert not asked.worker.load_in_4bit
    assert "need a GPU" in asked.warnings[0]


async def test_on_a_gpu_4_bits_are_the_default_and_said(planner, folder, gpu):
    write_folder(folder / "mine")

    default = await planned(planner, "mine")
    whole = await planned(planner, "mine", load_in_4bit=False)
    on_the_processor = await planned(planner, "mine", gpu_layers=0)

    assert default.worker.load_in_4bit
    assert default.memory.device == "NVIDIA L4"
    assert "held in 4 bits" in default.warnings[0]
    assert default.memory.weights_bytes < whole.memory.weights_bytes
    assert (whole.worker.load_in_4bit, whole.warnings) == (False, ())
    assert on_the_processor.worker.device == "cpu"
    assert not on_the_processor.worker.load_in_4bit


async def test_what_is_quantized_already_or_only_reads_stays_as_it_is(planner, folder, gpu):
    write_folder(folder / "awq", LLAMA | {"quantization_config": {"quant_method": "awq"}})
    write_folder(folder / "ear", WHISPER, files={"preprocessor_config.json": {}})

    quantized = await planned(planner, "awq", load_in_4bit=True)
    listening = await planned(planner, "ear", load_in_4bit=True)

    assert (quantized.worker.load_in_4bit, listening.worker.load_in_4bit) == (False, False)
    assert "quantized already (awq)" in quantized.warnings[0]
    assert "only models that write" in listening.warnings[0]
    assert (await planned(planner, "ear")).warnings == ()


@pytest.mark.parametrize(
    ("method", "base", "fields", "is_in_4bit", "words"),
    [
        ("lora", "org/base", {}, False, "in its own precision: it was trained as lora"),
        ("qlora", "org/base", {}, True, "in 4 bits: it was trained as qlora"),
        (None, "org/base", {}, False, "in its own precision: nothing says otherwise"),
        (None, "org/base-bnb-4bit", {}, True, "in 4 bits: its base's name says so"),
        ("lora", "org/base-bnb-4bit", {}, False, "in its own precision: it was trained as lora"),
        ("lora", "org/base", {"load_in_4bit": True}, True, "in 4 bits, as asked; it was trained"),
        ("qlora", "org/base", {"load_in_4bit": False}, False, "own precision, as asked; it was"),
    ],
)
async def test_an_adapters_own_training_decides(
    planner, folder, gpu, method, base, fields, is_in_4bit, words
):
    write_folder(folder / base)
    write_adapter_folder(folder / "adapter", base, unsloth_training_method=method)

    spec = await planned(planner, "adapter", **fields)

    assert spec.worker.load_in_4bit is is_in_4bit
    assert words in spec.warnings[0]


async def test_an_adapter_of_4_bits_without_a_gpu_says_what_becomes_of_it(planner, folder):
    write_folder(folder / "org/base")
    write_adapter_folder(folder / "adapter", "org/base", unsloth_training_method="qlora")

    spec = await planned(planner, "adapter")

    assert not spec.worker.load_in_4bit
    assert "base is loaded in its own precision: 4-bit weights" in spec.warnings[0]


# Adapters ----------------------------------------------------------------------------------------


async def test_an_adapter_is_its_base_with_it_as_the_default(planner, folder):
    write_folder(folder / "org/base")
    write_adapter_folder(folder / "adapter", "org/base")

    spec = await planned(planner, "adapter")

    assert (spec.model, spec.base_model) == ("adapter", "org/base")
    assert spec.worker.model_path == str(folder / "org/base")
    assert spec.worker.adapters == (AdapterPlan("adapter", str(folder / "adapter")),)
    assert spec.worker.default_adapter == "adapter"
    reply = describe.validation(type("P", (), {"spec": spec, "stop_first": (), "stop_after": ()}))
    assert (reply.is_lora, reply.is_gguf, reply.base_model) == (True, False, "org/base")


async def test_further_adapters_come_along_by_clear_names(planner, folder):
    write_folder(folder / "org/base")
    for name in ("a/style", "b/style", "c/tone"):
        write_adapter_folder(folder / name, "org/base")

    plain = await planned(planner, "org/base", lora_adapters=["a/style", "b/style"])
    beside = await planned(planner, "a/style", lora_adapters=["c/tone", "a/style"])

    assert [adapter.name for adapter in plain.worker.adapters] == ["style", "b/style"]
    assert (plain.worker.default_adapter, plain.base_model) == (None, None)
    assert [adapter.name for adapter in beside.worker.adapters] == ["style", "tone"]
    assert beside.worker.default_adapter == "style"


async def test_an_adapter_of_another_base_is_refused(planner, folder):
    write_folder(folder / "org/base")
    write_folder(folder / "org/other")
    write_adapter_folder(folder / "theirs", "org/other")

    for name, words in (("theirs", "trained on org/other"), ("org/other", "no LoRA adapter")):
        with pytest.raises(InvalidRequest, match=words) as refused:
            await planned(planner, "org/base", lora_adapters=[name])
        assert refused.value.param == "lora_adapters"


# Environments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("criteria", "fits"),
    [
        ({"transformers_version": "5.17.0"}, True),
        ({"transformers_version": "5.17"}, True),
        ({"transformers_version": "5.1"}, False),
        ({"architectures": ("LlamaForCausalLM",)}, True),
        ({"architectures": ("OtherForCausalLM",)}, False),
        ({"models": ("MINE",)}, True),
        ({"models": ("other",), "architectures": ("LlamaForCausalLM",)}, True),
        ({}, False),
    ],
)
async def test_the_first_environment_that_fits_runs_the_model(
    catalog, settings, folder, tmp_path, criteria, fits
):
    write_folder(folder / "mine")
    environments = [
        WorkerEnv(python=tmp_path / "first", **criteria),
        WorkerEnv(python=tmp_path / "last", models=("mine",)),
    ]
    without = settings.model_copy(update={"llama_server_path": tmp_path / "none"})
    planner = Planner(catalog, Inventory(without), lambda: environments)

    spec = await planned(planner, "mine")

    assert spec.worker_python == tmp_path / ("first" if fits else "last")


# The list ----------------------------------------------------------------------------------------


async def test_a_card_tells_what_each_takes_and_needs(catalog, folder):
    processor = {"preprocessor_config.json": {}}
    write_folder(folder / "text")
    write_folder(folder / "eye", GEMMA_VISION, files=processor)
    write_folder(folder / "ear", WHISPER, files=processor)
    write_adapter_folder(folder / "adapter", "text")
    write_adapter_folder(folder / "lost", "gone/base")
    write_json(folder / "pickle/config.json", LLAMA)
    (folder / "pickle/pytorch_model.bin").write_bytes(bytes(100))

    cards = {card.id: card for card in describe.model_cards(catalog.scan(), {})}

    assert {name: card.modalities for name, card in cards.items()} == {
        "text": ["text"],
        "eye": ["text", "image"],
        "ear": ["audio"],
        "adapter": ["text"],
        "pickle": ["text"],
        "lost": ["text"],
    }
    assert cards["ear"].task == "transcription"
    assert (cards["adapter"].is_lora, cards["adapter"].base_model) == (True, "text")
    assert (cards["lost"].is_lora, cards["lost"].status) == (True, "unusable")
    assert cards["pickle"].consents == ["allow_pickle"]
    assert not any(card.is_gguf for card in cards.values())
    assert cards["text"].memory.total > cards["text"].memory.weights > 0
    assert cards["lost"].memory is None


async def test_a_name_for_two_things_is_asked_about(planner, folder):
    write_folder(folder / "run/one")
    write_folder(folder / "run/two")

    with pytest.raises(ModelAmbiguous, match="run/one, run/two"):
        await planned(planner, str(folder / "run"))


async def test_a_processor_without_16_bits_gets_float32_with_its_memory_and_says_so(
    planner, folder, features
):
    write_folder(folder / "org/mine")
    narrow = await planned(planner, "org/mine")
    features.clear()
    features.add("avx2")

    wide = await planned(planner, "org/mine")

    assert (narrow.worker.dtype, wide.worker.dtype) == ("auto", "float32")
    assert wide.memory.weights_bytes == 2 * narrow.memory.weights_bytes
    assert wide.memory.kv_bytes == 2 * narrow.memory.kv_bytes
    assert any("float32" in warning for warning in wide.warnings)


async def test_a_gpu_computes_in_16_bits_whatever_the_processor_can(planner, folder, features, gpu):
    write_folder(folder / "org/mine")
    features.clear()
    features.add("avx2")

    assert (await planned(planner, "org/mine", load_in_4bit=False)).worker.dtype == "auto"
