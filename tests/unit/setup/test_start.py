"""`scripts/start` as a person runs it, with small scripts in place of pip, npm and the server."""

import os
import signal
import subprocess

import pytest

from eloquio.setup.checkout import home_model
from eloquio.setup.model import BUILT_IN


class Studio:
    """A checkout with the real scripts, in which only what a test breaks is broken."""

    def __init__(self, workshop, home):
        self.workshop = workshop
        self.home = home
        workshop.copy_scripts()
        tools = workshop.tools_folder
        workshop.program(tools / "llama-server", "")
        workshop.program(tools / "node", "echo v22.0.0")
        bin_folder = workshop.checkout.node_modules / ".bin"
        vite = workshop.program(tools / "vite", "mkdir -p $2/dist")
        workshop.program(tools / "npm", f"mkdir -p {bin_folder}; cp {vite} {bin_folder}")
        model = home_model(home)
        model.parent.mkdir(parents=True)
        with model.open("wb") as file:
            file.truncate(BUILT_IN.size_bytes)
        self.plays()

    def plays(self, **scripts):
        self.workshop.copy_of_python(**scripts)

    def command(self, *flags):
        script = self.workshop.checkout.root / "scripts" / "start"
        return [script, "--lite", "--home", self.home, *flags]

    def environment(self, **more):
        return {"PATH": f"{self.workshop.tools_folder}:{os.environ['PATH']}"} | more

    def start(self, *flags, **environment):
        return subprocess.run(
            self.command(*flags),
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def used(self, word):
        return [line for line in self.workshop.commands() if word in line]


@pytest.fixture
def studio(workshop, tmp_path):
    return Studio(workshop, tmp_path / "home")


def test_the_flags_reach_the_server_and_its_status_comes_back(studio, tmp_path):
    studio.plays(serve="exit 7")

    started = studio.start("--port", "9000", "--no-browser", "--model-dir", tmp_path)

    assert started.returncode == 7
    assert studio.used("eloquio serve") == [
        f"python -m eloquio serve --home {studio.home} --port 9000 --model-dir {tmp_path} "
        "--no-browser"
    ]


def test_the_second_start_runs_neither_pip_nor_npm(studio):
    studio.start()
    before = len(studio.used("pip") + studio.used("npm"))

    again = studio.start()

    assert before > 0
    assert len(studio.used("pip") + studio.used("npm")) == before
    assert len(studio.used("eloquio serve")) == 2
    assert again.stdout == ""


def test_a_failed_start_says_what_to_do_and_the_next_one_goes_on_from_there(studio):
    studio.plays(pip="echo 'Temporary failure in name resolution'; exit 1")

    failed = studio.start()

    assert failed.returncode == 1
    assert "Python packages failed: python ended with status 1" in failed.stdout
    assert "Temporary failure in name resolution" in failed.stdout
    assert "check the network" in failed.stdout
    assert "Not started: Python packages. Running it again goes on from here." in failed.stdout
    assert studio.used("eloquio serve") == []

    studio.plays()
    studio.start()

    assert len(studio.used("install")) == 2
    assert len(studio.used("npm ci")) == 1
    assert len(studio.used("eloquio serve")) == 1


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_during_set_up_ends_it_and_its_tools(studio, tmp_path, number, status):
    os.mkfifo(pipe := tmp_path / "pipe")
    # The pipe stays open as long as pip or what it started lives.
    studio.plays(pip=f"exec 9> {pipe}; echo installing >&9; sleep 600")
    process = subprocess.Popen(
        studio.command(), env=studio.environment(), stdout=subprocess.PIPE, text=True
    )
    with pipe.open() as reader:
        assert reader.readline() == "installing\n"
        process.send_signal(number)
        said, _ = process.communicate(timeout=10)
        assert reader.read() == ""
    assert process.returncode == status
    assert "  --  Python packages" in said
    assert studio.used("eloquio serve") == []


def test_the_server_is_the_very_process_that_was_started(studio):
    studio.plays(serve="echo $$; exec sleep 600")
    process = subprocess.Popen(
        studio.command(), env=studio.environment(), stdout=subprocess.PIPE, text=True
    )
    with process:
        assert any(line.strip() == str(process.pid) for line in process.stdout)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == -signal.SIGINT


def test_a_llama_server_named_by_mistake_is_said(studio, tmp_path):
    started = studio.start(LLAMA_SERVER_PATH=str(tmp_path / "nothing"))

    assert started.returncode == 1
    assert "LLAMA_SERVER_PATH names" in started.stdout
    assert studio.used("pip") == []


def test_help_names_every_flag(studio):
    text = studio.start("--help").stdout

    for flag in (
        *("--host", "--port", "--no-browser", "--home", "--lite", "--wait"),
        *("--cuda", "--build", "--model-dir"),
    ):
        assert flag in text


@pytest.mark.parametrize(
    "flags", [["--port", "70000"], ["--lite", "--wait"], ["--cuda", "--build"], ["--nonsense"]]
)
def test_flags_that_make_no_sense_are_refused(studio, flags):
    refused = studio.start(*flags)

    assert refused.returncode == 2
    assert studio.used("eloquio serve") == []


def test_without_a_new_enough_python_it_says_what_to_install(studio, tmp_path):
    studio.workshop.checkout.python.unlink()
    folder = tmp_path / "bare"
    studio.workshop.program(folder / "python3", "exit 1")
    for name in ("dirname", "uname", "sh"):
        (folder / name).symlink_to(f"/usr/bin/{name}")

    started = studio.start(PATH=str(folder))

    assert started.returncode == 1
    assert "Eloquio needs Python 3.11 or newer" in started.stderr
    assert "Install one" in started.stderr
