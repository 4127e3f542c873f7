import pytest

from eloquio.setup.engine import Build, EngineSource, engine_source, extras_for, how_to_get_one
from eloquio.setup.llama_build import build_step
from eloquio.setup.tools import SetupFailed

LINUX = ("linux", "x86_64")


def test_a_named_llama_server_goes_before_all_others(workshop):
    named = workshop.program(workshop.tools_folder / "my-llama-server", "")
    workshop.program(workshop.checkout.built_engine, "")

    source = engine_source(workshop.checkout, {"LLAMA_SERVER_PATH": str(named)}, *LINUX)

    assert source is EngineSource.NAMED


def test_one_that_was_built_here_goes_before_the_one_on_path(workshop):
    workshop.program(workshop.checkout.built_engine, "")
    workshop.program(workshop.tools_folder / "llama-server", "")

    source = engine_source(workshop.checkout, {"PATH": str(workshop.tools_folder)}, *LINUX)

    assert source is EngineSource.BUILT


def test_one_on_path_goes_before_the_package(workshop):
    workshop.program(workshop.tools_folder / "llama-server", "")

    source = engine_source(workshop.checkout, {"PATH": str(workshop.tools_folder)}, *LINUX)

    assert source is EngineSource.ON_PATH
    assert extras_for(source) == set()


@pytest.mark.parametrize(
    ("system", "machine", "source"),
    [
        ("linux", "x86_64", EngineSource.PACKAGED),
        ("linux", "aarch64", EngineSource.NONE),
        ("darwin", "arm64", EngineSource.NONE),
        ("darwin", "x86_64", EngineSource.NONE),
    ],
)
def test_the_package_is_for_linux_on_x86_64_only(workshop, system, machine, source):
    assert engine_source(workshop.checkout, {"PATH": ""}, system, machine) is source
    assert ("engine" in extras_for(source)) == (source is EngineSource.PACKAGED)


def test_where_there_is_none_it_says_how_to_get_one():
    assert "brew install llama.cpp" in how_to_get_one("darwin")
    assert "scripts/start --build" in how_to_get_one("linux")


def test_a_build_for_cuda_needs_nvcc(workshop, tools, progress, monkeypatch):
    workshop.program(workshop.tools_folder / "g++", "")
    monkeypatch.setenv("PATH", str(workshop.tools_folder))
    step = build_step(workshop.checkout, Build.CUDA, tools)

    with pytest.raises(SetupFailed, match="nvcc") as failure:
        step.make(progress)

    assert "CUDA toolkit" in failure.value.next_step
    assert not step.is_made()


def test_a_build_needs_a_compiler(workshop, tools, progress, monkeypatch):
    monkeypatch.setenv("PATH", str(workshop.tools_folder))

    with pytest.raises(SetupFailed, match="C\\+\\+ compiler"):
        build_step(workshop.checkout, Build.CPU, tools).make(progress)
