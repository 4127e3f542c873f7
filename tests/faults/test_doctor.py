"""`eloquio doctor --faults`: what it prints, that it can fail, and that it leaves nothing."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from eloquio.cli import app
from eloquio.doctor.faults import suite
from eloquio.doctor.faults.processes import is_alive
from eloquio.doctor.faults.scenario import expect, proves
from eloquio.doctor.faults.serving import studio


@proves("An engine that was never loaded is loaded.")
async def is_promised_in_vain(folder: Path) -> str:
    async with studio(folder, {"a": {}}) as running:
        expect((await running.status())["loaded"] == ["a"], "Nothing was loaded.")
        return "it was loaded"


@proves("No engine is left behind.")
async def leaves_an_engine(folder: Path) -> str:
    """As under a supervisor that forgets one."""
    async with studio(folder, {"a": {}}) as running:
        model = running.shelf / "a.gguf"
        forgotten = await asyncio.create_subprocess_exec(
            running.program, "--model", model, "--alias", "a", "--host", folder / "forgotten.sock"
        )
        await running.until_started("a")
        (folder.parent / "forgotten.pid").write_text(f"{forgotten.pid} {running.program}")
        return "all is well"


@proves("Nothing goes wrong.")
async def goes_wrong(folder: Path) -> str:
    raise ValueError("an accident")


@proves("The answer is 200.")
async def is_answered_otherwise(folder: Path) -> str:
    async with studio(folder, {"a": {"exits": 1}}) as running:
        (await running.load("a")).require(200)
        return "it was 200"


@proves("A loaded model answers.")
async def is_answered(folder: Path) -> str:
    async with studio(folder, {"a": {}}) as running:
        (await running.load("a")).require(200)
        (await running.chat("a")).require(200)
        return "it answered"


@pytest.fixture
def doctor(monkeypatch, tmp_path):
    """The command with these scenarios, and its folders below `tmp_path`."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def doctor(*arguments, scenarios):
        monkeypatch.setattr(suite, "SCENARIOS", scenarios)
        return CliRunner().invoke(app, ["doctor", "--faults", *arguments])

    return doctor


def test_a_promise_that_holds_is_a_line_that_says_what_was_seen(doctor):
    result = doctor(scenarios=(is_answered,))
    assert result.exit_code == 0, result.output
    [line, *_, total] = result.stdout.splitlines()
    assert line.split()[:2] == ["passed", "is-answered"]
    assert line.endswith(" s  it answered")
    assert total == "1 passed, 0 failed"


@pytest.mark.parametrize(
    ("scenario", "seen"),
    [
        (is_promised_in_vain, "Nothing was loaded."),
        (goes_wrong, "ValueError: an accident"),
        (is_answered_otherwise, "The answer was 502"),
    ],
)
def test_a_broken_promise_fails_with_what_was_seen(doctor, scenario, seen):
    result = doctor(scenarios=(scenario,))
    assert result.exit_code == 1
    assert result.stdout.startswith(f"failed  {scenario.name}")
    assert seen in result.stdout
    assert scenario.promise in result.stdout
    assert result.stdout.endswith("0 passed, 1 failed\n")


def test_a_process_that_is_left_behind_fails_the_scenario_and_is_ended(doctor, tmp_path):
    result = doctor(scenarios=(leaves_an_engine,))
    assert result.exit_code == 1
    assert "Its end left engines behind" in result.stdout
    pid, program = (tmp_path / "forgotten.pid").read_text().split(" ")
    assert not is_alive(int(pid), Path(program))


def test_the_report_as_json_is_one_document(doctor):
    result = doctor("--json", scenarios=(is_answered, goes_wrong))
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert (report["passed"], report["failed"]) == (1, 1)
    verdicts = {found["name"]: found["verdict"] for found in report["scenarios"]}
    assert verdicts == {"is-answered": "passed", "goes-wrong": "failed"}
    assert report["scenarios"][0]["promise"]


def test_scenarios_are_chosen_by_a_part_of_their_names(doctor):
    result = doctor("--only", "wrong", scenarios=(is_answered, goes_wrong))
    assert result.stdout.endswith("0 passed, 1 failed\n")
    nothing = doctor("--only", "nonsense", scenarios=(is_answered,))
    assert nothing.exit_code == 2
    assert "nonsense" in nothing.stderr


def test_a_choice_among_faults_without_faults_is_refused():
    result = CliRunner().invoke(app, ["doctor", "--only", "silent"])
    assert result.exit_code == 2
    assert "--faults" in result.stderr


def test_every_scenario_has_a_name_of_its_own_and_a_promise():
    names = [scenario.name for scenario in suite.SCENARIOS]
    assert len(set(names)) == len(names)
    assert all(scenario.promise.endswith(".") for scenario in suite.SCENARIOS)


@pytest.fixture
def short_folder():
    """With a path that leaves room for the names of sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_process(short_folder, number):
    command = [sys.executable, "-m", "eloquio", "doctor", "--faults", "--only", "is-ready-late"]
    environment = os.environ | {"TMPDIR": str(short_folder)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as doctor:
        started = until(lambda: started_processes(doctor.pid, short_folder), seconds=60)
        doctor.send_signal(number)
        doctor.communicate(timeout=30)
    until(lambda: not [process for process in started if process.is_running()], seconds=10)
    if number != signal.SIGKILL:
        assert doctor.returncode == 130
        assert list(short_folder.iterdir()) == []


def started_processes(pid: int, folder: Path) -> list[psutil.Process] | None:
    """What the doctor has started, as soon as its server runs an engine."""
    processes = psutil.Process(pid).children(recursive=True)
    is_there = any(folder.glob("*/llama-server.notes")) and len(processes) > 1
    return processes if is_there else None


def until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not (seen := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return seen
