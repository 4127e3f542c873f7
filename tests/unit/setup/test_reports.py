import pytest

from eloquio.setup.reports import Count, count

REPORT = """<testsuites><testsuite>
  <testcase name="one"/>
  <testcase name="two"><failure>no</failure></testcase>
  <testcase name="three"><error>broken</error></testcase>
  <testcase name="four"><skipped/></testcase>
  <testcase name="five"><system-out>text</system-out></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def report(tmp_path):
    return tmp_path / "report.xml"


def test_the_cases_of_a_report_are_counted(report):
    report.write_text(REPORT)

    assert count(report, runner_failed=True) == Count(passed=2, failed=2, skipped=1)


@pytest.mark.parametrize("text", ["", "<not xml", "<testsuites/>"])
def test_a_runner_that_failed_without_a_failed_case_counts_as_one(report, text):
    report.write_text(text)

    assert count(report, runner_failed=True) == Count(failed=1)


def test_a_report_that_never_came_counts_nothing_but_the_failure(report):
    assert count(report, runner_failed=True) == Count(failed=1)


def test_counts_add_up_to_the_closing_line():
    total = Count(passed=2, failed=1) + Count(passed=3)

    assert total.line() == "5 passed, 1 failed"
    assert Count(passed=1, skipped=2).line() == "1 passed, 0 failed, 2 skipped"
