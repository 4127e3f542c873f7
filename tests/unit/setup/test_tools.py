import os
import threading

import pytest

from eloquio.setup.tools import Interrupted, ToolFailed, Tools


def test_the_output_is_returned_and_its_last_line_told_as_progress(tools, progress, tmp_path):
    script = "echo one; echo two >&2; printf '\\033[32mgreen\\033[0m\\n'"

    output = tools.run(["sh", "-c", script], cwd=tmp_path, progress=progress)

    assert output.splitlines()[:2] == ["one", "two"]
    assert progress.text == "green"


def test_a_tool_that_fails_says_its_status_and_all_its_output(tools, progress, tmp_path):
    with pytest.raises(ToolFailed, match="sh ended with status 3") as failure:
        tools.run(["sh", "-c", "echo no network; exit 3"], cwd=tmp_path, progress=progress)

    assert failure.value.output == "no network\n"


def test_a_tool_that_is_not_there_fails_by_its_name(tools, progress, tmp_path):
    with pytest.raises(ToolFailed, match="npm can't be run"):
        tools.run([tmp_path / "npm"], cwd=tmp_path, progress=progress)


def test_a_tool_gets_no_python_settings_of_ours(tools, progress, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("PIP_USER", "1")

    output = tools.run(["env"], cwd=tmp_path, progress=progress)

    assert "PYTHONPATH" not in output
    assert "PIP_USER" not in output


def test_a_tool_that_takes_too_long_is_ended(tools, progress, tmp_path):
    with pytest.raises(ToolFailed, match="sleep took longer than 0 s"):
        tools.run(["sleep", "600"], cwd=tmp_path, progress=progress, limit_seconds=0.1)


def test_a_stop_ends_a_tool_and_what_it_started(progress, tmp_path):
    tools, interrupted = Tools(), []
    os.mkfifo(pipe := tmp_path / "pipe")

    def run():
        try:
            # The pipe is open until the shell and what it started are gone.
            script = f"exec 9> {pipe}; sleep 600 & echo ready >&9; wait"
            tools.run(["sh", "-c", script], cwd=tmp_path, progress=progress)
        except Interrupted:
            interrupted.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    with pipe.open() as reader:
        assert reader.readline() == "ready\n"
        tools.stop()
        assert reader.read() == ""
    thread.join(10)

    assert interrupted == [True]


def test_a_tool_that_ignores_the_request_to_end_is_killed(progress, tmp_path, monkeypatch):
    monkeypatch.setattr("eloquio.setup.tools.GRACE_SECONDS", 0.1)
    tools, told = Tools(), threading.Event()
    progress.tell = lambda line: told.set()

    def run():
        script = "trap '' TERM; echo ready; while :; do sleep 1; done"
        with pytest.raises(Interrupted):
            tools.run(["sh", "-c", script], cwd=tmp_path, progress=progress)

    thread = threading.Thread(target=run)
    thread.start()
    assert told.wait(10)
    tools.stop()
    thread.join(10)

    assert not thread.is_alive()


def test_nothing_is_started_after_a_stop(progress, tmp_path):
    tools = Tools()
    tools.stop()

    with pytest.raises(Interrupted):
        tools.run(["touch", "file"], cwd=tmp_path, progress=progress)

    assert not (tmp_path / "file").exists()
