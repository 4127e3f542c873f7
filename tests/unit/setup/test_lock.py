import subprocess
import sys
import threading

import pytest

from eloquio.setup.checkout import Checkout
from eloquio.setup.lock import Locked, locked

HOLDER = """
import sys
from pathlib import Path
from eloquio.setup.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path / "lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(Checkout.here().root / "backend")},
    )
    assert process.stdout.readline() == "held\n"
    with process:
        yield process
        process.kill()


def test_a_second_process_says_that_it_waits_and_goes_on_when_the_first_ends(tmp_path, holder):
    def end_the_first():
        busy.set()
        holder.stdin.close()

    busy = threading.Event()

    with locked(tmp_path / "lock", when_busy=end_the_first):
        assert busy.is_set()
        assert holder.wait(10) == 0


def test_one_that_does_not_want_to_wait_is_told(tmp_path, holder):
    with pytest.raises(Locked), locked(tmp_path / "lock"):
        pass


def test_a_killed_holder_holds_nothing(tmp_path, holder):
    holder.kill()
    holder.wait(10)

    with locked(tmp_path / "lock"):
        pass


def test_a_free_lock_can_be_taken_again_and_again(tmp_path):
    for _ in range(2):
        with locked(tmp_path / "folder" / "lock"):
            pass
