import threading

from eloquio.setup.steps import Step, run_steps
from eloquio.setup.tools import SetupFailed, ToolFailed

WAIT_SECONDS = 10


def never_made():
    return False


def nothing(progress):
    pass


def failing(progress):
    raise ToolFailed("pip ended with status 1", "the disk\nNo space left on device\n")


def test_steps_that_need_nothing_of_each_other_run_at_the_same_time(tools, console):
    together = threading.Barrier(2)

    def meet(progress):
        together.wait(WAIT_SECONDS)

    steps = [Step("one", never_made, meet), Step("two", never_made, meet)]

    assert run_steps(steps, tools, console) == []


def test_a_step_starts_after_those_it_needs(tools, console):
    order = []
    steps = [
        Step("second", never_made, lambda progress: order.append("second"), after=("first",)),
        Step("first", never_made, lambda progress: order.append("first")),
    ]

    assert run_steps(steps, tools, console) == []
    assert order == ["first", "second"]


def test_what_is_made_is_not_made_again(tools, console, said):
    def fail_if_run(progress):
        raise AssertionError

    made = Step("made", lambda: True, fail_if_run)
    needing = Step("needing", never_made, nothing, after=("made",))

    assert run_steps([made, needing], tools, console) == []
    assert "made" not in said.getvalue()


def test_a_failure_stops_what_needs_it_and_nothing_else(tools, console, said):
    ran = []
    steps = [
        Step("broken", never_made, failing),
        Step("needing", never_made, lambda progress: ran.append("needing"), after=("broken",)),
        Step("other", never_made, lambda progress: ran.append("other")),
    ]

    assert sorted(run_steps(steps, tools, console)) == ["broken", "needing"]
    assert ran == ["other"]


def test_a_failure_says_what_failed_the_tools_last_words_and_what_to_do(tools, console, said):
    run_steps([Step("packages", never_made, failing)], tools, console)

    text = said.getvalue()
    assert "packages failed: pip ended with status 1" in text
    assert "No space left on device" in text
    assert "The disk is full: make room there" in text


def test_a_step_that_knows_what_to_do_says_so_itself(tools, console, said):
    def fail(progress):
        raise SetupFailed("there is no compiler", next_step="Install gcc.")

    run_steps([Step("engine", never_made, fail)], tools, console)

    assert "engine failed: there is no compiler" in said.getvalue()
    assert "-> Install gcc." in said.getvalue()


def test_no_more_steps_run_at_once_than_allowed(tools, console):
    lock = threading.Lock()

    def alone(progress):
        assert lock.acquire(blocking=False)
        lock.release()

    steps = [Step(str(number), never_made, alone) for number in range(20)]

    assert run_steps(steps, tools, console, at_once=1) == []
