"""Folders of safetensors and adapters in the list, and what each is called."""

import os
import shutil

import pytest

from eloquio.errors import (
    AdapterBaseMissing,
    FolderWithoutModels,
    ModelAmbiguous,
    ModelConfigInvalid,
    ModelKindUnsupported,
    ModelNotDownloaded,
    SafetensorsInvalid,
    SafetensorsShardMissing,
    SafetensorsTruncated,
)
from eloquio.models import folder_entries
from eloquio.models.catalog import Catalog
from eloquio.models.entry import AdapterFolder, SafetensorsFolder
from eloquio.models.safetensors_header import read_weights
from fixtures.gguf_files import write_model
from fixtures.safetensors_files import (
    LLAMA,
    write_adapter_folder,
    write_folder,
    write_json,
    write_safetensors,
    write_sharded,
)


def ids(catalog):
    return [entry.id for entry in catalog.scan()]


def only(catalog):
    (entry,) = catalog.scan()
    return entry


def snapshot(settings, repository):
    name = "models--" + repository.replace("/", "--")
    return settings.hub_cache / name / "snapshots" / "abc"


def through_links(settings, repository, source):
    """As a Hugging Face cache has it: links to files that are called by their hash."""
    folder = snapshot(settings, repository)
    folder.mkdir(parents=True)
    blobs = folder.parents[1] / "blobs"
    blobs.mkdir()
    for number, file in enumerate(sorted(source.iterdir())):
        shutil.copy(file, blobs / str(number))
        (folder / file.name).symlink_to(blobs / str(number))


# The list ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relative", "model_id", "repository"),
    [
        ("mine", "mine", None),
        ("org/repo", "org/repo", "org/repo"),
        ("a/b/c", "a/b/c", None),
        (".", "models of mine", None),
    ],
)
def test_a_folder_is_called_by_where_it_lies(catalog, folder, relative, model_id, repository):
    write_folder(folder / relative)

    entry = only(catalog)

    assert (entry.id, entry.repository, entry.source) == (model_id, repository, "folder")
    assert (entry.task, entry.problem, entry.variant) == ("chat", None, None)
    assert isinstance(entry.files, SafetensorsFolder)
    assert entry.weights_bytes == entry.files.weights.size_bytes > 0
    assert entry.size_bytes > entry.weights_bytes


def test_one_of_the_hub_cache_is_called_as_its_repository_is(catalog, settings, tmp_path):
    through_links(settings, "Org/Repo", write_folder(tmp_path / "source"))

    entry = only(catalog)

    assert (entry.id, entry.source) == ("Org/Repo", "hub_cache")
    assert catalog.resolve("org/repo").id == "Org/Repo"


def test_a_repository_may_hold_both_forms(catalog, folder):
    write_folder(folder / "org/repo")
    write_model(folder / "org/repo/m-Q4_0.gguf")

    assert ids(catalog) == ["org/repo:Q4_0", "org/repo"]
    assert catalog.resolve("org/repo").id == "org/repo"
    assert catalog.resolve("org/repo", "Q4_0").id == "org/repo:Q4_0"
    with pytest.raises(ModelAmbiguous, match="org/repo:Q4_0, org/repo"):
        catalog.resolve(str(folder / "org/repo"))


def test_a_small_file_beside_gguf_makes_no_second_model(catalog, folder):
    write_json(folder / "org/repo/config.json", LLAMA)
    write_model(folder / "org/repo/m-Q4_0.gguf")

    assert ids(catalog) == ["org/repo:Q4_0"]


def test_a_checkpoint_below_a_model_is_one_too(catalog, folder):
    write_folder(folder / "run")
    write_folder(folder / "run/checkpoint-10")

    assert ids(catalog) == ["run", "run/checkpoint-10"]
    assert catalog.resolve(str(folder / "run")).id == "run"
    assert catalog.resolve(str(folder / "run/checkpoint-10")).id == "run/checkpoint-10"


def test_the_parts_of_an_embedding_model_are_none_of_their_own(catalog, folder):
    write_folder(folder / "whole", files={"modules.json": []})
    write_folder(folder / "whole/2_Dense", {"in_features": 8})
    write_json(folder / "apart/modules.json", [])
    write_folder(folder / "apart/0_Transformer")
    write_json(folder / "apart/1_Pooling/config.json", {})

    entries = {entry.id: entry for entry in catalog.scan()}

    assert {name: entry.task for name, entry in entries.items()} == {
        "apart": "embedding",
        "whole": "embedding",
    }
    assert [entry.problem for entry in entries.values()] == [None, None]
    assert entries["apart"].weights_bytes == entries["whole"].weights_bytes


def test_a_diffusion_pipeline_is_one_model_that_cannot_be_run(catalog, folder):
    write_json(folder / "pipeline/model_index.json", {"_class_name": "FluxPipeline"})
    write_folder(folder / "pipeline/text_encoder")

    assert ids(catalog) == ["pipeline"]
    with pytest.raises(ModelKindUnsupported, match="pipeline makes pictures"):
        catalog.resolve("pipeline")


def test_a_file_in_the_folder_names_the_whole_model(catalog, folder):
    write_folder(folder / "mine")

    assert catalog.resolve(str(folder / "mine/model.safetensors")).id == "mine"
    assert catalog.resolve("mine/config.json").id == "mine"


def test_a_folder_that_no_scan_lists_is_found_by_its_path(catalog, settings, folder, tmp_path):
    write_folder(folder / ".hidden/mine")
    through_links(settings, "org/repo", write_folder(tmp_path / "source"))
    older = snapshot(settings, "org/repo").with_name("older")
    shutil.copytree(snapshot(settings, "org/repo"), older, symlinks=True)
    os.utime(older, (1, 1))

    assert catalog.resolve(str(folder / ".hidden/mine")).path == folder / ".hidden/mine"
    assert catalog.resolve(str(older)).path == older
    with pytest.raises(FolderWithoutModels):
        catalog.resolve(str(folder / ".hidden"))


# What is wrong with one --------------------------------------------------------------------------


def test_each_part_that_the_index_names_has_to_be_there(catalog, folder):
    write_sharded(folder / "mine", count=3)
    whole = catalog.resolve("mine")
    assert whole.weights_bytes == 3 * 64 * 2

    (folder / "mine/model-00002-of-00003.safetensors").unlink()

    with pytest.raises(SafetensorsShardMissing, match=r"1 of 3 .*model-00002-of-00003"):
        catalog.resolve("mine")


def test_parts_without_their_index_and_weights_of_another_name_are_told(catalog, folder):
    write_sharded(folder / "parts")
    (folder / "parts/model.safetensors.index.json").unlink()
    write_json(folder / "named/config.json", LLAMA)
    write_safetensors(folder / "named/model.fp16.safetensors")

    with pytest.raises(SafetensorsShardMissing, match=r"index\.json is missing"):
        catalog.resolve("parts")
    with pytest.raises(SafetensorsShardMissing, match=r"called model\.fp16\.safetensors"):
        catalog.resolve("named")


@pytest.mark.parametrize(
    "weight_map",
    [{}, {"a": "../other.safetensors"}, {"a": "/etc/hostname"}, {"a": 3}, {"a": ["b"]}, "text"],
)
def test_an_index_may_name_files_of_its_own_folder_only(catalog, folder, weight_map):
    write_sharded(folder / "mine")
    write_json(folder / "mine/model.safetensors.index.json", {"weight_map": weight_map})

    with pytest.raises(ModelConfigInvalid, match="names no files of this folder"):
        catalog.resolve("mine")


def test_a_broken_file_is_named(catalog, folder):
    write_folder(folder / "cut")
    os.truncate(folder / "cut/model.safetensors", 300)
    write_folder(folder / "page")
    (folder / "page/model.safetensors").write_text("<html>404</html>")
    write_folder(folder / "text", files={"config.json": "no json"})

    with pytest.raises(SafetensorsTruncated, match=r"model\.safetensors was cut"):
        catalog.resolve("cut")
    with pytest.raises(SafetensorsInvalid, match=r"model\.safetensors is not .* a web page"):
        catalog.resolve("page")
    with pytest.raises(ModelConfigInvalid, match=r"config\.json isn't JSON"):
        catalog.resolve("text")
    assert [entry.problem is None for entry in catalog.scan()] == [False] * 3


def test_weights_that_are_there_only_as_pickle_are_known_as_such(catalog, folder):
    write_json(folder / "mine/config.json", LLAMA)
    (folder / "mine/pytorch_model.bin").write_bytes(bytes(100))

    entry = only(catalog)
    assert (entry.files.is_pickle, entry.weights_bytes) == (True, 100)

    write_safetensors(folder / "mine/model.safetensors")
    assert not only(catalog).files.is_pickle


def test_only_a_class_that_transformers_lacks_needs_the_repositorys_code(catalog, folder):
    brings = {"auto_map": {"AutoModelForCausalLM": "modeling.Own"}}
    write_folder(folder / "known", LLAMA | brings)
    write_folder(folder / "own", LLAMA | brings | {"architectures": ["OwnForCausalLM"]})

    assert {e.id: e.files.needs_code for e in catalog.scan()} == {"known": False, "own": True}


def test_a_header_is_read_again_only_when_its_file_changed(settings, folder, monkeypatch):
    read = []
    monkeypatch.setattr(
        folder_entries, "read_weights", lambda path: read.append(path) or read_weights(path)
    )
    catalog = Catalog(settings, lambda: [folder])
    write_folder(folder / "mine")

    catalog.scan()
    catalog.scan()
    assert len(read) == 1
    write_safetensors(folder / "mine/model.safetensors", {"x.weight": (3, 3)})
    assert catalog.scan()[0].files.weights.parameters == 9


# Adapters ----------------------------------------------------------------------------------------


def test_an_adapter_is_listed_last_with_its_base_and_its_bases_task(catalog, folder):
    write_adapter_folder(folder / "adapter", "org/base")
    write_folder(folder / "org/base")

    base, adapter = catalog.scan()

    assert (adapter.id, adapter.task, adapter.problem) == ("adapter", "chat", None)
    assert isinstance(adapter.files, AdapterFolder)
    assert adapter.files.base == base
    assert adapter.weights_bytes == base.weights_bytes + 4 * 64 * 4


@pytest.mark.parametrize(
    "told",
    [
        "Org/BASE",
        "org/base/",
        "../org/base",
        "org/./base",
        "{folder}/org/base",
        "{folder}/adapter/../org/base",
    ],
)
def test_its_base_is_found_in_any_case_and_by_a_path(catalog, folder, told):
    write_folder(folder / "org/base")
    write_adapter_folder(folder / "adapter", told.replace("{folder}", str(folder)))

    assert catalog.resolve("adapter").files.base.id == "org/base"


def test_its_base_is_found_in_the_hub_cache(catalog, settings, folder, tmp_path):
    through_links(settings, "Org/Base", write_folder(tmp_path / "source"))
    write_adapter_folder(folder / "adapter", "org/base")

    assert catalog.resolve("adapter").files.base.id == "Org/Base"


@pytest.mark.parametrize(
    ("told", "error", "words"),
    [
        ("org/gone", ModelNotDownloaded, "org/gone, which isn't on this machine"),
        ("org/gguf", AdapterBaseMissing, "org/gguf, which is here only as GGUF"),
        ("org/broken", AdapterBaseMissing, "org/broken, which can't be loaded: .*was cut"),
        ("other", AdapterBaseMissing, "a folder other, which isn't among the models here"),
        ("/home/somebody/secret/base", AdapterBaseMissing, "a folder base, which isn't among"),
        ("C:\\Users\\somebody\\base", AdapterBaseMissing, "a folder base, which isn't among"),
        ("", AdapterBaseMissing, "doesn't say which model it was trained on"),
        (None, AdapterBaseMissing, "doesn't say which model it was trained on"),
        ("a\0b", AdapterBaseMissing, "isn't among the models here"),
    ],
)
def test_without_its_base_the_answer_names_what_is_missing(catalog, folder, told, error, words):
    write_model(folder / "org/gguf/m-Q4_0.gguf")
    write_folder(folder / "org/broken")
    os.truncate(folder / "org/broken/model.safetensors", 300)
    write_adapter_folder(folder / "other", "org/gone")
    write_adapter_folder(folder / "adapter", told)

    with pytest.raises(error, match=words) as refused:
        catalog.resolve("adapter")
    assert "somebody" not in str(refused.value)


def test_a_base_outside_the_allowed_folders_is_not_taken(catalog, folder, tmp_path):
    outside = write_folder(tmp_path / "outside")
    write_adapter_folder(folder / "adapter", str(outside))

    with pytest.raises(AdapterBaseMissing, match="a folder outside, which isn't among"):
        catalog.resolve("adapter")


def test_an_adapter_of_another_kind_or_without_weights_is_told_so(catalog, folder):
    write_folder(folder / "org/base")
    write_adapter_folder(folder / "prefix", "org/base", peft_type="PREFIX_TUNING")
    write_adapter_folder(folder / "empty", "org/base")
    (folder / "empty/adapter_model.safetensors").unlink()

    with pytest.raises(ModelKindUnsupported, match="of the kind PREFIX_TUNING"):
        catalog.resolve("prefix")
    with pytest.raises(SafetensorsShardMissing, match=r"no adapter_model\.safetensors"):
        catalog.resolve("empty")
