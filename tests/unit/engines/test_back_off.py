import pytest

from eloquio.engines.back_off import back_off_seconds


@pytest.mark.parametrize(
    ("failures", "served_seconds", "wait"),
    [
        (1, None, 5),
        (1, 0.1, 0),
        (1, 1000, 0),
        (2, None, 10),
        (2, 0.1, 10),
        (5, None, 60),
        (50, 3, 60),
    ],
)
def test_a_start_on_request_waits_longer_after_each_failure(failures, served_seconds, wait):
    assert back_off_seconds(failures, served_seconds) == wait
