import signal
import subprocess
import sys
import textwrap

import pytest

from eloquio.setup.checkout import Checkout
from eloquio.setup.lock import locked
from eloquio.setup.tools import SetupFailed
from eloquio.setup.worker import STAGES, WorkerEnvironment, worker_step


@pytest.fixture
def worker(workshop, tools, tmp_path, monkeypatch):
    """The environment, whose Python and pip are there but play."""
    monkeypatch.setattr("eloquio.setup.worker.NEEDED_BYTES", 0)

    def plays(script):
        for name in ("python", "pip"):
            workshop.program(workshop.checkout.worker_venv / "bin" / name, script)
        return WorkerEnvironment(workshop.checkout, tmp_path / "home", tools)

    return plays


def installed(workshop):
    return [line.partition("worker-constraints.txt ")[2] for line in workshop.commands()]


def test_torch_is_installed_before_what_needs_it_and_all_of_it_once(
    workshop, worker, progress, tmp_path
):
    environment = worker("echo Collecting torch")
    assert not environment.is_made()

    environment.make(progress)

    assert environment.is_made()
    assert installed(workshop) == [" ".join(stage) for stage in STAGES]
    log = (tmp_path / "home" / "logs" / "worker-setup.log").read_text()
    assert "Collecting torch" in log


def test_a_failure_keeps_the_stages_before_it(workshop, worker, progress):
    environment = worker('case "$*" in *unsloth*) echo ENOSPC; exit 1 ;; esac')
    with pytest.raises(SetupFailed, match=r"worker-setup\.log") as failure:
        environment.make(progress)
    assert "ENOSPC" in failure.value.output
    assert not environment.is_made()

    environment = worker("")
    environment.make(progress)

    assert environment.is_made()
    first, second, third = (stage[0] for stage in STAGES)
    assert [line.split()[0] for line in installed(workshop)] == [first, second, second, third]


def test_other_constraints_make_it_anew(workshop, worker, progress):
    environment = worker("")
    environment.make(progress)

    workshop.checkout.worker_constraints.write_text("torch==3\n")

    assert not environment.is_made()


def test_without_room_it_says_how_much_is_needed(workshop, worker, progress, monkeypatch):
    monkeypatch.setattr("eloquio.setup.worker.NEEDED_BYTES", 10**18)

    with pytest.raises(SetupFailed, match="it needs 1000000000 GB of room") as failure:
        worker("").make(progress)

    assert "--lite" in failure.value.next_step
    assert workshop.commands() == []


def test_two_starts_do_not_make_it_at_the_same_time(workshop, worker, tools, progress, tmp_path):
    worker("")
    step = worker_step(workshop.checkout, tmp_path / "home", tools)

    with (
        locked(workshop.checkout.worker_venv / "setup.lock"),
        pytest.raises(SetupFailed, match="another start"),
    ):
        step.make(progress)

    assert workshop.commands() == []


def test_it_ends_with_the_server_however_that_ends(workshop, tmp_path):
    """The server here is a program that starts the worker's set-up and is killed."""
    workshop.copy_scripts()
    (tmp_path / "pipe-folder").mkdir()
    pipe = tmp_path / "pipe-folder" / "pipe"
    subprocess.run(["mkfifo", pipe], check=True)
    for name in ("python", "pip"):
        script = f"exec 9> {pipe}; echo installing >&9; sleep 600"
        workshop.program(workshop.checkout.worker_venv / "bin" / name, script)
    server_script = textwrap.dedent(
        """
        import subprocess, sys
        subprocess.Popen([sys.executable, "-m", "eloquio.setup", "worker", *sys.argv[1:]]).wait()
        """
    )
    server = subprocess.Popen(
        [sys.executable, "-c", server_script, tmp_path / "home", "127.0.0.1", "0"],
        env={"PYTHONPATH": str(workshop.checkout.root / "backend")},
        stdout=subprocess.DEVNULL,
    )
    with pipe.open() as reader:
        assert reader.readline() == "installing\n"
        server.send_signal(signal.SIGKILL)
        server.wait(10)
        # The end of the pipe comes when its last writer is gone.
        assert reader.read() == ""


def test_the_pinned_stages_agree_with_the_constraints():
    lines = Checkout.here().worker_constraints.read_text().lower().splitlines()
    pinned = dict(line.split("==") for line in lines)
    for package in STAGES[-1]:
        name, _, version = package.partition("==")
        assert name in pinned
        assert version in ("", pinned[name])
