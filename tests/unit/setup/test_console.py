import io
import time

from eloquio.setup.console import Console, Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Ascii(io.StringIO):
    encoding = "ascii"


def test_a_step_that_ended_has_one_line_with_its_seconds(console, said):
    console.finish(console.start("packages"))
    console.finish(console.start("page"), "!!")

    lines = said.getvalue().splitlines()
    assert lines == ["  ..  packages", "  ok  packages, 0.0 s", "  ..  page", "  !!  page, 0.0 s"]


def test_a_long_step_says_now_and_then_where_it_is():
    said = io.StringIO()
    with Console(said, said_every=0) as console:
        progress = console.start("packages")
        progress.tell("Collecting fastapi")
        deadline = time.monotonic() + 10
        while "packages 0 s: Collecting fastapi" not in said.getvalue():
            assert time.monotonic() < deadline
        console.finish(progress)


def test_on_a_terminal_the_running_steps_share_one_moving_line():
    terminal = Terminal()
    with Console(terminal) as console:
        one, two = console.start("packages"), console.start("page")
        one.tell("Collecting")
        deadline = time.monotonic() + 10
        while "\r\x1b[Kpackages 0 s: Collecting | page 0 s" not in terminal.getvalue():
            assert time.monotonic() < deadline
        console.finish(one)
        console.finish(two)
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_what_a_tool_colours_or_erases_is_not_told():
    progress = Progress("page", 0.0)

    progress.tell("\x1b[32mbuilding\x1b[0m\r")
    progress.tell("   \x1b[K ")

    assert progress.text == "building"


def test_warnings_of_a_tool_do_not_hide_what_it_does():
    progress = Progress("page", 0.0)

    progress.tell("Collecting fastapi")
    progress.tell("WARNING: a location is ignored")
    progress.tell("npm warn deprecated inflight")

    assert progress.text == "Collecting fastapi"


def test_a_terminal_without_unicode_gets_what_it_can_show():
    out = Ascii()
    with Console(out) as console:
        console.say("waiting …")

    assert out.getvalue() == "waiting ?\n"
