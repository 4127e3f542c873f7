import pytest

from eloquio.engines.watchdog import Sample, Watchdog

GIB = 1 << 30


def idle_after(seconds, sample_at, health="503", poll_seconds=0.05):
    """How long it has been idle when it was asked every `poll_seconds` for `seconds`."""
    watchdog = Watchdog(0.0, sample_at(0.0))
    for poll in range(1, round(seconds / poll_seconds) + 1):
        now = poll * poll_seconds
        watchdog.observe(sample_at(now), health, now)
    return watchdog.idle_seconds(seconds)


@pytest.mark.parametrize(
    "sample_at",
    [
        pytest.param(lambda now: Sample(lines=int(now / 100)), id="a line now and then"),
        pytest.param(lambda now: Sample(bytes_read=int(now / 100) * 8), id="a slow disk"),
        pytest.param(lambda now: Sample(cpu_seconds=0.05 * now), id="a little computing"),
        pytest.param(lambda now: Sample(resident_bytes=int(now / 2400 * GIB)), id="it grows"),
        pytest.param(lambda now: Sample(resident_bytes=GIB - int(now * 4096)), id="it shrinks"),
    ],
)
def test_a_load_of_40_minutes_that_moves_is_never_idle_for_long(sample_at):
    watchdog = Watchdog(0.0, sample_at(0.0))
    longest = 0.0
    for now in range(1, 2401):
        longest = max(longest, watchdog.idle_seconds(now))
        watchdog.observe(sample_at(now), "503", now)
    assert longest <= 101


@pytest.mark.parametrize(
    "sample_at",
    [
        pytest.param(lambda _: Sample(3, 1.5, GIB, 99), id="nothing at all"),
        pytest.param(lambda now: Sample(cpu_seconds=0.002 * now), id="answers to polls"),
        pytest.param(lambda now: Sample(cpu_seconds=int(now / 5) * 0.01), id="ticks of a clock"),
        pytest.param(lambda now: Sample(cpu_seconds=0.01 * now), id="a slow machine's polls"),
        pytest.param(lambda now: Sample(resident_bytes=int(now) % 2 * 65536), id="an allocator"),
    ],
)
def test_a_hung_engine_is_idle_though_it_is_asked_all_the_time(sample_at):
    assert idle_after(120, sample_at) >= 119


def test_computing_after_a_long_silence_counts_once_it_is_more_than_polls_cost():
    watchdog = Watchdog(0.0, Sample(cpu_seconds=1.0))
    watchdog.observe(Sample(cpu_seconds=1.0), "503", 0.0)
    watchdog.observe(Sample(cpu_seconds=2.9), "503", 100.0)
    assert watchdog.idle_seconds(100.0) == 100.0
    watchdog.observe(Sample(cpu_seconds=3.1), "503", 101.0)
    assert watchdog.idle_seconds(101.0) == 0.0


@pytest.mark.parametrize(
    "moved",
    [
        Sample(4, 1.0, GIB, 10),
        Sample(3, 1.0, GIB, 11),
        Sample(3, 1.0, GIB + 65537, 10),
        Sample(3, 1.0, GIB - 65537, 10),
        Sample(3, 2.3, GIB, 10),
    ],
)
def test_each_sign_counts_at_once(moved):
    still = Sample(3, 1.0, GIB, 10)
    watchdog = Watchdog(0.0, still)
    watchdog.observe(still, "503", 0.0)
    watchdog.observe(moved, "503", 60.0)
    assert watchdog.idle_seconds(61.0) == 1.0


def test_small_steps_of_memory_count_when_they_add_up():
    def sample_at(now):
        return Sample(resident_bytes=int(now) * 16384)

    assert idle_after(120, sample_at) <= 5


def test_what_it_says_of_its_health_counts_when_it_is_new():
    watchdog = Watchdog(0.0, Sample())
    for now, health in [(10.0, "refused"), (20.0, "refused"), (30.0, "503"), (40.0, "503")]:
        watchdog.observe(Sample(), health, now)
    assert watchdog.idle_seconds(40.0) == 10.0


def test_an_engine_whose_health_only_flickers_does_not_move():
    watchdog = Watchdog(0.0, Sample())
    for now in range(1, 121):
        watchdog.observe(Sample(), "timeout" if now % 2 else "503", now)
    assert watchdog.idle_seconds(120.0) == 118.0


def test_a_child_that_ends_takes_its_processor_time_out_of_the_sum_only():
    watchdog = Watchdog(0.0, Sample(cpu_seconds=50.0))
    watchdog.observe(Sample(cpu_seconds=50.0), "503", 0.0)
    watchdog.observe(Sample(cpu_seconds=1.0), "503", 10.0)
    assert watchdog.idle_seconds(10.0) == 10.0
    watchdog.observe(Sample(cpu_seconds=2.0), "503", 11.0)
    assert watchdog.idle_seconds(11.0) == 0.0
