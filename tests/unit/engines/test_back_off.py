import pytest

from eloquio.engines.back_off import BackOff, back_off_seconds
from eloquio.errors import EngineCrashed, EngineUnavailable


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


def refusal_of(back_off):
    with pytest.raises(EngineUnavailable) as refusal:
        back_off.refuse()
    return refusal.value


def test_a_request_is_told_how_long_to_wait_and_never_too_short():
    now = 0.0
    back_off = BackOff(lambda: now)
    back_off.refuse()
    back_off.remember(EngineCrashed("It fell over."), None)
    now = 0.6
    refusal = refusal_of(back_off)
    assert refusal.retry_after_seconds == 5
    assert "It fell over." in refusal.message
    now = 5.0
    back_off.refuse()


def test_a_crash_after_more_than_a_minute_of_service_counts_as_the_first():
    back_off = BackOff(lambda: 0.0)
    for _ in range(3):
        back_off.remember(EngineCrashed("It fell over."), 61)
        back_off.refuse()
    back_off.remember(EngineCrashed("It fell over."), 59)
    assert refusal_of(back_off).retry_after_seconds == 10
