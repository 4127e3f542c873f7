"""Which model a person's words mean, and what they are told when it is none."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eloquio.errors import (
    EloquioError,
    FolderWithoutModels,
    InvalidRequest,
    ModelAmbiguous,
    ModelFileMissing,
    ModelFileTruncated,
    ModelNotDownloaded,
    ModelNotFound,
    NotAModelFile,
    PathNotAllowed,
)
from eloquio.models.catalog import Catalog
from eloquio.settings import Settings
from fixtures.gguf_files import (
    cut,
    write_adapter,
    write_importance_matrix,
    write_model,
    write_shards,
)

_opened: list[str] = []


def _record(event: str, arguments: tuple[object, ...]) -> None:
    if event in {"open", "os.listdir", "os.scandir"} and isinstance(arguments[0], str | Path):
        _opened.append(str(arguments[0]))


@pytest.fixture(scope="module")
def opened() -> list[str]:
    """The paths of all files and folders this process opens, as Python's audit events tell them."""
    sys.addaudithook(_record)  # can't be taken away again
    return _opened


def ids(catalog: Catalog) -> list[str]:
    return [entry.id for entry in catalog.scan()]


def test_a_model_is_found_by_its_id_in_any_case(catalog: Catalog, folder: Path) -> None:
    path = write_model(folder / "Org/Repo/m-Q4_K_M.gguf")

    for name in ("Org/Repo:Q4_K_M", "org/repo:q4_k_m", "Org/Repo", "org/repo"):
        assert catalog.resolve(name).path == path
    assert catalog.resolve("org/repo", "q4_k_m").path == path
    assert catalog.resolve("org/repo:Q4_K_M", "Q4_K_M").path == path


def test_ids_that_differ_only_in_case_are_each_found(catalog: Catalog, folder: Path) -> None:
    write_model(folder / "model.gguf")
    write_model(folder / "Model.gguf")

    assert len({catalog.resolve(name).path for name in ids(catalog)}) == 2


def test_a_dynamic_quant_is_found_by_its_plain_name_unless_that_is_here_too(
    catalog: Catalog, folder: Path
) -> None:
    write_model(folder / "org/repo/m-UD-Q4_K_XL.gguf")
    assert catalog.resolve("org/repo", "Q4_K_XL").variant == "UD-Q4_K_XL"

    write_model(folder / "org/repo/m-Q4_K_XL.gguf")
    assert catalog.resolve("org/repo:Q4_K_XL").variant == "Q4_K_XL"


def test_a_repository_with_several_quants_asks_which(catalog: Catalog, folder: Path) -> None:
    write_model(folder / "org/repo/m-Q4_0.gguf")
    write_model(folder / "org/repo/m-Q8_0.gguf")

    with pytest.raises(ModelAmbiguous, match="org/repo:Q4_0, org/repo:Q8_0"):
        catalog.resolve("org/repo")
    assert catalog.resolve("org/repo", "Q8_0").id == "org/repo:Q8_0"
    with pytest.raises(ModelNotDownloaded, match="not here as Q2_K; here are: org/repo:Q4_0"):
        catalog.resolve("org/repo:Q2_K")
    with pytest.raises(InvalidRequest, match="asks for Q4_0, gguf_variant for Q8_0"):
        catalog.resolve("org/repo:Q4_0", "Q8_0")


def test_an_importance_matrix_beside_a_model_leaves_no_doubt_but_a_broken_quant_does(
    catalog: Catalog, folder: Path
) -> None:
    path = write_model(folder / "org/repo/m-Q4_0.gguf")
    write_importance_matrix(folder / "org/repo/imatrix.gguf")
    assert catalog.resolve("org/repo").path == path

    cut(path, folder / "org/repo/m-Q8_0.gguf", -100)
    with pytest.raises(ModelAmbiguous, match="org/repo:Q4_0, org/repo:Q8_0"):
        catalog.resolve("org/repo")
    with pytest.raises(ModelFileTruncated):
        catalog.resolve("org/repo:Q8_0")


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: str(folder / "sub" / "model.gguf"),
        lambda folder: str(folder / "sub"),
        lambda folder: str(folder / "x" / ".." / "sub" / "model.gguf"),
        lambda folder: "sub/model.gguf",
        lambda folder: "./sub/model.gguf",
        lambda folder: "sub",
        lambda folder: "sub/model",
        lambda folder: "~/models of mine/sub/model.gguf",
    ],
)
def test_a_model_is_found_by_a_path(
    catalog: Catalog,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[Path], str],
) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    (folder / "x").mkdir()
    path = write_model(folder / "sub" / "model.gguf")

    assert catalog.resolve(write(folder)).path == path


def test_a_file_that_no_scan_lists_is_found_by_its_path(catalog: Catalog, folder: Path) -> None:
    hidden = write_model(folder / ".hidden" / "model.gguf")
    bare = write_model(folder / "sha256-0123abcd")

    assert catalog.resolve(str(hidden)).path == hidden
    assert catalog.resolve("sha256-0123abcd").path == bare


def test_any_shard_names_the_whole_model(catalog: Catalog, folder: Path) -> None:
    shards = write_shards(folder)

    assert catalog.resolve(str(shards[2])).path == shards[0]


def test_a_folder_must_hold_exactly_one_model(catalog: Catalog, folder: Path) -> None:
    write_model(folder / "two" / "a.gguf")
    write_model(folder / "two" / "b.gguf")
    write_model(folder / "one" / "a.gguf")
    write_adapter(folder / "one" / "adapter.gguf")
    (folder / "none").mkdir()
    (folder / "tensors").mkdir()
    (folder / "tensors" / "model.safetensors").write_bytes(b"")

    assert catalog.resolve(str(folder / "one")).id == "one/a"
    with pytest.raises(ModelAmbiguous, match="two/a, two/b"):
        catalog.resolve(str(folder / "two"))
    with pytest.raises(FolderWithoutModels, match="no model in the folder none"):
        catalog.resolve(str(folder / "none"))
    with pytest.raises(FolderWithoutModels, match=r"no config\.json"):
        catalog.resolve(str(folder / "tensors"))


def test_each_wrong_input_has_its_own_error(catalog: Catalog, folder: Path) -> None:
    (folder / "text.gguf").write_text("no model")
    whole = write_model(folder / "whole.gguf")
    cut(whole, folder / "cut.gguf", -100)
    wrong: dict[str, type[EloquioError]] = {
        str(folder / "gone.gguf"): ModelFileMissing,
        "gone.gguf": ModelFileMissing,
        str(folder / "text.gguf"): NotAModelFile,
        str(folder / "cut.gguf"): ModelFileTruncated,
        "/etc/hostname": PathNotAllowed,
        "org/unknown": ModelNotDownloaded,
        "org/unknown:Q4_0": ModelNotDownloaded,
        "unknown": ModelNotFound,
        "builtin/unknown": ModelNotFound,
    }

    raised = {}
    for name in wrong:
        with pytest.raises(EloquioError) as caught:
            catalog.resolve(name)
        raised[name] = type(caught.value)
        assert caught.value.next_step
        assert str(folder) not in str(caught.value.body())

    assert raised == wrong


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("../../etc/passwd", PathNotAllowed),
        ("../home/../../etc/passwd", PathNotAllowed),
        ("/", PathNotAllowed),
        ("~root/x.gguf", PathNotAllowed),
        ("~nobody-of-that-name/x.gguf", ModelFileMissing),
        ("C:\\x", PathNotAllowed),
        ("C:/models/x.gguf", PathNotAllowed),
        ("\\\\server\\share\\x.gguf", PathNotAllowed),
        ("//server/share/x.gguf", PathNotAllowed),
        ("model\0.gguf", InvalidRequest),
        ("model\n.gguf", InvalidRequest),
        ("model\ud800", InvalidRequest),
        ("model\u202e", InvalidRequest),
        ("   ", InvalidRequest),
        ("%2e%2e/%2e%2e/etc/passwd", ModelNotFound),
        ("file:///etc/passwd", ModelNotFound),
        ("https://huggingface.co/org/repo", ModelNotFound),
        ("x" * 300, ModelNotFound),
        ("x" * 300 + ".gguf", ModelFileMissing),
        ("a/" * 2000, ModelNotFound),
        ("org/..", ModelFileMissing),
        ("../..", PathNotAllowed),
    ],
)
def test_strange_names_are_refused_and_nothing_outside_is_opened(
    catalog: Catalog,
    folder: Path,
    opened: list[str],
    name: str,
    error: type[EloquioError],
) -> None:
    write_model(folder / "model.gguf")

    opened.clear()
    catalog.scan()
    assert str(folder / "model.gguf") in opened
    with pytest.raises(error) as caught:
        catalog.resolve(name)

    assert [path for path in opened if not path.startswith(str(folder.parent))] == []
    assert 400 <= caught.value.status < 500
    assert len(caught.value.message) < 300


def test_a_long_name_in_an_allowed_folder_is_only_missing(catalog: Catalog, folder: Path) -> None:
    with pytest.raises(ModelFileMissing):
        catalog.resolve(str(folder / ("x" * 300)))


def test_a_strange_variant_is_refused(catalog: Catalog, folder: Path) -> None:
    write_model(folder / "org/repo/m-Q4_0.gguf")

    with pytest.raises(InvalidRequest):
        catalog.resolve("org/repo", "Q4\0")
    with pytest.raises(ModelNotDownloaded):
        catalog.resolve("org/repo", "../../etc/passwd")


def test_a_path_outside_gets_the_same_answer_whether_or_not_it_exists(
    catalog: Catalog, folder: Path, tmp_path: Path
) -> None:
    there = write_model(tmp_path / "outside" / "there.gguf")
    (folder / "link.gguf").symlink_to(there)
    (folder / "link to nothing.gguf").symlink_to(tmp_path / "outside" / "gone.gguf")

    bodies = []
    for path in (there, there.with_name("gone.gguf"), *folder.glob("link*")):
        with pytest.raises(PathNotAllowed) as caught:
            catalog.resolve(str(path))
        bodies.append(caught.value.body())

    assert all(body == bodies[0] for body in bodies)
    assert str(tmp_path) not in str(bodies[0])


def test_a_folder_beside_an_allowed_one_with_a_longer_name_is_outside(
    catalog: Catalog, folder: Path
) -> None:
    path = write_model(folder.with_name(folder.name + " too") / "model.gguf")

    with pytest.raises(PathNotAllowed):
        catalog.resolve(str(path))


def test_an_allowed_folder_counts_from_the_moment_it_is_allowed(
    settings: Settings, folder: Path
) -> None:
    allowed: list[Path] = []
    catalog = Catalog(settings, lambda: allowed)
    path = write_model(folder / "model.gguf")

    with pytest.raises(PathNotAllowed):
        catalog.resolve(str(path))
    allowed.append(folder)

    assert catalog.resolve(str(path)).id == "model"


def test_an_allowed_folder_may_itself_be_a_link(settings: Settings, folder: Path) -> None:
    path = write_model(folder / "model.gguf")
    link = folder.with_name("link")
    link.symlink_to(folder)

    catalog = Catalog(settings, lambda: [link])

    assert catalog.resolve(str(path)).id == "model"
    assert catalog.resolve(str(link / "model.gguf")).id == "model"
    assert catalog.resolve(str(link)).id == "model"


def test_no_id_or_name_holds_a_path_of_the_machine_or_odd_characters(
    catalog: Catalog, folder: Path, tmp_path: Path
) -> None:
    write_model(folder / "日本語　モデル 👩‍💻.gguf")
    odd = os.fsdecode(b"odd\xff\n\x1b[31m.gguf")
    shutil.copy(folder / "日本語　モデル 👩‍💻.gguf", folder / odd)

    entries = catalog.scan()

    for entry in entries:
        assert str(tmp_path) not in entry.id + entry.display_name
        entry.id.encode()
        assert catalog.resolve(entry.id).path == entry.path
    assert {entry.id for entry in entries} == {"日本語　モデル 👩‍💻", "odd���[31m"}


def test_a_problem_gathers_no_traceback_over_many_requests(catalog: Catalog, folder: Path) -> None:
    (folder / "text.gguf").write_text("no model")

    raised = []
    for _ in range(2):
        with pytest.raises(NotAModelFile) as caught:
            catalog.resolve("text")
        raised.append(caught.value)

    assert raised[0] is not raised[1]
    assert raised[0].body() == raised[1].body()


def test_a_snapshot_of_the_hub_cache_may_be_named_by_its_folder(
    catalog: Catalog, settings: Settings
) -> None:
    repository = settings.hub_cache / "models--org--repo"
    blob = write_model(repository / "blobs" / "0123abcd")
    snapshot = repository / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "m-Q4_0.gguf").symlink_to(blob)

    for path in (snapshot, repository, snapshot / "m-Q4_0.gguf"):
        assert catalog.resolve(str(path)).id == "org/repo:Q4_0"
