"""What the catalogue lists, and what it calls it."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from eloquio.errors import (
    ModelFileInvalid,
    ModelFileTruncated,
    ModelKindUnsupported,
    ModelShardMissing,
    NotAModelFile,
)
from eloquio.models import gguf_entries
from eloquio.models.catalog import Catalog
from eloquio.models.entry import ModelEntry
from eloquio.models.gguf import GgufHeader, read_header
from eloquio.settings import Settings
from fixtures.gguf_files import (
    cut,
    write_adapter,
    write_embedding_model,
    write_importance_matrix,
    write_model,
    write_projector,
    write_shards,
)


def ids(catalog: Catalog) -> list[str]:
    return [entry.id for entry in catalog.scan()]


def only(catalog: Catalog) -> ModelEntry:
    (entry,) = catalog.scan()
    return entry


def in_hub_cache(settings: Settings, repository: str, revision: str = "abc") -> Path:
    """The folder of a snapshot in a Hugging Face cache."""
    name = "models--" + repository.replace("/", "--")
    snapshot = settings.hub_cache / name / "snapshots" / revision
    snapshot.mkdir(parents=True, exist_ok=True)
    return snapshot


# The list ----------------------------------------------------------------------------------------


def test_nothing_is_listed_where_no_folder_exists(catalog: Catalog) -> None:
    assert catalog.scan() == []


def test_a_built_in_model_comes_first_under_its_own_name(
    catalog: Catalog, settings: Settings, folder: Path
) -> None:
    write_model(folder / "aaa.gguf")
    path = write_model(settings.models_dir / "builtin" / "smollm2-135m-instruct.gguf", file_type=3)
    os.utime(path, (1_700_000_000, 1_700_000_000))

    builtin, other = catalog.scan()

    assert builtin.id == "builtin/smollm2-135m-instruct"
    assert builtin.source == "builtin"
    assert builtin.display_name == "SmolLM2 135M Instruct"
    assert builtin.path == path
    assert builtin.variant == "Q4_1"
    assert builtin.size_bytes == path.stat().st_size
    assert builtin.created == 1_700_000_000
    assert builtin.task == "chat"
    assert builtin.problem is None
    assert other.id == "aaa"


@pytest.mark.parametrize(
    ("relative", "model_id", "quant"),
    [
        ("org/repo/model-Q4_K_M.gguf", "org/repo:Q4_K_M", "Q4_K_M"),
        ("org/repo-GGUF/m.IQ2_XXS.gguf", "org/repo-GGUF:IQ2_XXS", "IQ2_XXS"),
        ("org/repo/m-UD-Q4_K_XL.gguf", "org/repo:UD-Q4_K_XL", "UD-Q4_K_XL"),
        ("org/repo/m-bf16.gguf", "org/repo:BF16", "BF16"),
        ("org/repo/m-MXFP4.gguf", "org/repo:MXFP4", "MXFP4"),
        ("org/repo/Q6_K/m.gguf", "org/repo:Q6_K", "Q6_K"),
        ("org/repo/unnamed.gguf", "org/repo:Q4_0", "Q4_0"),
        ("loose-f16.gguf", "loose-f16", "F16"),
        ("a/b.gguf", "a/b", "Q4_0"),
        ("a/b/c/d/e.GGUF", "a/b/c/d/e", "Q4_0"),
    ],
)
def test_an_id_follows_the_layout_of_the_folders(
    catalog: Catalog, folder: Path, relative: str, model_id: str, quant: str
) -> None:
    write_model(folder / relative)

    entry = only(catalog)

    assert (entry.id, entry.variant, entry.source) == (model_id, quant, "folder")


def test_without_a_quant_anywhere_the_file_itself_names_the_variant(
    catalog: Catalog, folder: Path
) -> None:
    write_model(folder / "org/repo/unnamed.gguf", file_type=None)

    assert only(catalog).id == "org/repo:unnamed"
    assert only(catalog).variant is None


def test_ids_that_would_collide_get_another_name_in_a_fixed_order(
    settings: Settings, tmp_path: Path
) -> None:
    folders = [tmp_path / "first", tmp_path / "second", tmp_path / "third" / "second"]
    for folder in folders:
        write_model(folder / "same.gguf")
    write_model(folders[0] / "org/repo/a-Q4_0.gguf")
    write_model(folders[0] / "org/repo/b-Q4_0.gguf")
    catalog = Catalog(settings, lambda: folders)

    expected = ["org/repo:Q4_0", "org/repo:b-Q4_0", "same", "second/same", "second/same-2"]
    assert ids(catalog) == expected
    assert ids(catalog) == expected


def test_a_file_reached_by_two_ways_is_listed_once(settings: Settings, folder: Path) -> None:
    model = write_model(folder / "deep" / "model.gguf")
    (folder / "link.gguf").symlink_to(model)
    catalog = Catalog(settings, lambda: [folder, folder / "deep", folder])

    assert len(catalog.scan()) == 1


def test_links_that_lead_out_or_to_nothing_or_in_circles_are_left_alone(
    catalog: Catalog, folder: Path, tmp_path: Path
) -> None:
    write_model(tmp_path / "outside" / "secret.gguf")
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "out.gguf").symlink_to(tmp_path / "outside" / "secret.gguf")
    (folder / "dangling.gguf").symlink_to(folder / "gone.gguf")
    (folder / "loop").symlink_to(folder)
    (folder / "self.gguf").symlink_to(folder / "self.gguf")

    assert catalog.scan() == []


def test_hidden_folders_and_very_deep_ones_are_passed_by(catalog: Catalog, folder: Path) -> None:
    write_model(folder / ".cache" / "model.gguf")
    write_model(folder / "/".join("abcdefghijkl") / "model.gguf")

    assert catalog.scan() == []


def test_the_hub_cache_is_read_at_the_main_revision_through_its_links(
    catalog: Catalog, settings: Settings
) -> None:
    old = in_hub_cache(settings, "org/Model-GGUF", "old")
    new = in_hub_cache(settings, "org/Model-GGUF", "new")
    blob = write_model(old.parent.parent / "blobs" / "0123abcd")
    for snapshot, name in ((old, "m-Q8_0.gguf"), (new, "m-Q4_K_M.gguf")):
        (snapshot / name).symlink_to(blob)
    refs = old.parent.parent / "refs"
    refs.mkdir()

    (refs / "main").write_text("new")
    entry = only(catalog)
    assert entry.id == "org/Model-GGUF:Q4_K_M"
    assert entry.source == "hub_cache"
    assert entry.display_name == "Model"
    assert entry.path == new / "m-Q4_K_M.gguf"

    (refs / "main").write_text("old")
    assert only(catalog).id == "org/Model-GGUF:Q8_0"


def test_without_a_main_revision_the_newest_snapshot_counts(
    catalog: Catalog, settings: Settings
) -> None:
    for revision, when in (("a", 3000), ("b", 1000)):
        snapshot = in_hub_cache(settings, "org/repo", revision)
        write_model(snapshot / f"{revision}-Q4_0.gguf")
        os.utime(snapshot, (when, when))

    assert only(catalog).path.name == "a-Q4_0.gguf"


def test_another_hub_cache_that_is_named_as_a_folder_is_read_as_one(
    settings: Settings, folder: Path
) -> None:
    write_model(folder / "models--org--repo" / "snapshots" / "abc" / "m-Q4_0.gguf")

    assert ids(Catalog(settings, lambda: [folder])) == ["org/repo:Q4_0"]


def test_shards_are_one_model_with_their_sizes_added(catalog: Catalog, folder: Path) -> None:
    shards = write_shards(folder / "org" / "repo" / "Q4_0", stem="big-Q4_0")

    entry = only(catalog)

    assert entry.id == "org/repo:Q4_0"
    assert entry.path == shards[0]
    assert entry.files.shards == shards
    assert entry.size_bytes == sum(shard.stat().st_size for shard in shards)
    assert entry.weights_bytes == sum(read_header(shard).weights_bytes for shard in shards)
    assert entry.problem is None


@pytest.mark.parametrize("gone", [1, 2])
def test_a_missing_shard_is_named(catalog: Catalog, folder: Path, gone: int) -> None:
    write_shards(folder)[gone - 1].unlink()

    problem = only(catalog).problem

    assert isinstance(problem, ModelShardMissing)
    assert f"model-Q4_0-0000{gone}-of-00003.gguf" in problem.message
    with pytest.raises(ModelShardMissing):
        catalog.resolve("model-Q4_0")


def test_a_shard_that_was_cut_is_found(catalog: Catalog, folder: Path) -> None:
    second = write_shards(folder)[1]
    os.truncate(second, read_header(second).expected_file_bytes - 1)

    with pytest.raises(ModelFileTruncated, match="00002-of-00003"):
        catalog.resolve("model-Q4_0")


def test_broken_files_stay_in_the_list_with_their_problem(catalog: Catalog, folder: Path) -> None:
    whole = write_model(folder / "whole.gguf")
    cut(whole, folder / "cut.gguf", 300)
    (folder / "text.gguf").write_text("<html>404</html>")
    (folder / "odd.gguf").write_bytes(b"GGUF\x01\x00\x00\x00" + bytes(64))
    write_adapter(folder / "adapter.gguf")
    write_importance_matrix(folder / "imatrix.gguf")
    write_embedding_model(folder / "embedding.gguf")

    problems = {entry.id: type(entry.problem) for entry in catalog.scan()}

    assert problems == {
        "adapter": ModelKindUnsupported,
        "cut": ModelFileTruncated,
        "embedding": type(None),
        "imatrix": ModelKindUnsupported,
        "odd": ModelFileInvalid,
        "text": NotAModelFile,
        "whole": type(None),
    }
    assert catalog.resolve("embedding").task == "embedding"


# Projectors --------------------------------------------------------------------------------------


def test_the_finest_projector_of_the_folder_comes_along_and_isnt_listed(
    catalog: Catalog, folder: Path
) -> None:
    write_model(folder / "org/repo/model-Q4_0.gguf")
    write_model(folder / "org/repo/Q8_0/model-Q8_0.gguf")
    write_projector(folder / "org/repo/mmproj-model-Q8_0.gguf")
    finest = write_projector(folder / "org/repo/mmproj-model-f16.gguf")

    entries = catalog.scan()
    assert [entry.files.projector for entry in entries] == [finest, finest]
    assert {entry.files.projector_bytes for entry in entries} == {finest.stat().st_size}


def test_each_model_gets_the_projector_named_like_it(catalog: Catalog, folder: Path) -> None:
    for name in ("gemma-3-4b-it-Q4_0", "gemma-3-12b-it-Q4_0", "llama-3-8b-Q4_0"):
        write_model(folder / f"{name}.gguf")
    small = write_projector(folder / "mmproj-gemma-3-4b-it-f16.gguf")
    large = write_projector(folder / "mmproj-gemma-3-12b-it-f16.gguf")

    projectors = {entry.id: entry.files.projector for entry in catalog.scan()}

    assert projectors == {
        "gemma-3-4b-it-Q4_0": small,
        "gemma-3-12b-it-Q4_0": large,
        "llama-3-8b-Q4_0": None,
    }


def test_a_projector_of_another_folder_stays_there(catalog: Catalog, folder: Path) -> None:
    write_model(folder / "a" / "model.gguf")
    write_projector(folder / "b" / "mmproj.gguf")

    assert only(catalog).files.projector is None


def test_a_projector_is_known_by_its_header_whatever_it_is_called(
    catalog: Catalog, folder: Path
) -> None:
    write_model(folder / "model.gguf")
    projector = write_projector(folder / "eyes.gguf")

    assert only(catalog).files.projector == projector
    with pytest.raises(ModelKindUnsupported, match=r"eyes\.gguf is a projector"):
        catalog.resolve(str(projector))


# Reading again -----------------------------------------------------------------------------------


def test_a_header_is_read_again_only_when_its_file_changed(
    settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counting(path: Path) -> GgufHeader:
        read.append(path.name)
        return read_header(path)

    monkeypatch.setattr(gguf_entries, "read_header", counting)
    catalog = Catalog(settings, lambda: [folder])
    write_model(folder / "stays.gguf")
    whole = write_model(folder / "changes.gguf")
    content = whole.read_bytes()
    whole.write_bytes(content[:200])

    assert isinstance(catalog.scan()[0].problem, ModelFileTruncated)
    assert isinstance(catalog.scan()[0].problem, ModelFileTruncated)
    whole.write_bytes(content)
    assert catalog.scan()[0].problem is None
    assert sorted(read) == ["changes.gguf", "changes.gguf", "stays.gguf"]


def test_several_threads_may_scan_while_files_come_and_go(catalog: Catalog, folder: Path) -> None:
    for number in range(5):
        write_model(folder / f"stays-{number}.gguf")
    faults: list[BaseException] = []

    def scan() -> None:
        try:
            for _ in range(20):
                stays = [name for name in ids(catalog) if name.startswith("stays")]
                assert len(stays) == 5
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=scan) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(20):
        shutil.copy(folder / "stays-0.gguf", folder / f"goes-{number}.gguf")
        (folder / f"goes-{number}.gguf").unlink()
    for thread in threads:
        thread.join()

    assert faults == []
