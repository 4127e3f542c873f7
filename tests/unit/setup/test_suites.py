import pytest

from eloquio.setup.console import Progress
from eloquio.setup.node import Node
from eloquio.setup.reports import Count
from eloquio.setup.suites import Suite, SuiteRunner, environment_for_tests, python_suites
from eloquio.setup.test import wanted_suites
from eloquio.setup.tools import SetupFailed

REPORT = '<testsuite><testcase name="a"/><testcase name="b">{}</testcase></testsuite>'


@pytest.fixture
def runner(workshop, tools, monkeypatch):
    return SuiteRunner(workshop.checkout, tools, Node(workshop.tools_folder, ("npm",)))


def suite_that(script):
    return Suite("unit", lambda report: ["sh", "-c", script.replace("REPORT", str(report))])


def test_a_suite_is_counted_from_its_report(runner, progress):
    runner.run(suite_that(f"echo '{REPORT.format('')}' > REPORT"), progress)

    assert runner.counts == {"unit": Count(passed=2)}
    assert progress.name == "unit: 2 passed, 0 failed"


def test_a_suite_with_failures_fails_with_all_that_it_said(runner, progress):
    report = REPORT.format("<failure/>")

    with pytest.raises(SetupFailed) as failure:
        runner.run(suite_that(f"echo '{report}' > REPORT; echo expected 4; exit 1"), progress)

    assert runner.counts == {"unit": Count(passed=1, failed=1)}
    assert failure.value.output == "expected 4\n"


def test_the_log_of_a_server_that_is_tested_does_not_hide_what_failed(runner, progress):
    with pytest.raises(SetupFailed) as failure:
        runner.run(suite_that("echo '[WebServer] GET /'; echo expected 4; exit 1"), progress)

    assert failure.value.output == "expected 4\n"


def test_a_suite_that_never_started_counts_as_a_failure(runner, progress):
    with pytest.raises(SetupFailed):
        runner.run(suite_that("exit 4"), progress)

    assert runner.counts == {"unit": Count(failed=1)}


def test_a_suite_has_a_home_with_the_model_and_sees_nothing_of_the_persons(
    runner, workshop, tools, progress, monkeypatch
):
    workshop.checkout.kept_model.parent.mkdir(parents=True)
    workshop.checkout.kept_model.write_text("model")
    monkeypatch.setenv("HOME", "/home/person")
    monkeypatch.setenv("HF_HUB_CACHE", "/home/person/hub")
    monkeypatch.setenv("ELOQUIO_API_KEY", "secret")
    script = (
        'cat "$ELOQUIO_HOME/models/builtin/smollm2-135m-instruct.gguf" "$ELOQUIO_TEST_MODEL"; '
        "env; exit 1"
    )

    with pytest.raises(SetupFailed) as failure:
        runner.run(suite_that(script), progress)

    assert failure.value.output.startswith("modelmodel")
    assert "/home/person" not in failure.value.output
    assert "secret" not in failure.value.output


def test_the_tests_environment_keeps_what_is_not_the_persons(tmp_path):
    environment = environment_for_tests(
        {"LANG": "C", "XDG_CONFIG_HOME": "/x", "CI": "true"}, tmp_path
    )

    assert environment["LANG"] == "C"
    assert environment["CI"] == "true"
    assert "XDG_CONFIG_HOME" not in environment
    assert environment["HOME"] == str(tmp_path)


def test_every_folder_with_python_tests_is_a_suite(workshop):
    for name in ("engine/test_a.py", "unit/deep/test_b.py", "e2e/test_c.py", "fixtures/d.py"):
        file = workshop.checkout.root / "tests" / name
        file.parent.mkdir(parents=True)
        file.touch()

    assert python_suites(workshop.checkout) == ["unit", "engine"]
    everything = ["check", "unit", "engine", "page", "e2e"]
    assert wanted_suites([], workshop.checkout) == everything
    assert wanted_suites(["e2e", "unit"], workshop.checkout) == ["unit", "e2e"]


def test_an_unknown_suite_is_refused_with_the_known_ones(workshop, capsys):
    (workshop.checkout.root / "tests").mkdir()

    with pytest.raises(SystemExit):
        wanted_suites(["untis"], workshop.checkout)

    assert "no suite is called untis: there are check, page, e2e" in capsys.readouterr().err


def test_a_suites_progress_is_its_name_until_it_ended(runner):
    progress = Progress("unit", 0.0)
    runner.run(suite_that("touch REPORT"), progress)

    assert progress.name == "unit: 0 passed, 0 failed"
