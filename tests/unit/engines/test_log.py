from pathlib import Path

from eloquio.engines.log import MAX_LINE_CHARACTERS, LogRing


def test_lines_are_whole_however_the_output_was_cut():
    log = LogRing()
    for part in ("on", "e\ntw", "o\n", "thr"):
        log.feed(part.encode())
    assert log.lines == ["one", "two"]
    log.close()
    assert log.lines == ["one", "two", "thr"]
    assert log.line_count == 3


def test_only_the_last_lines_are_kept_and_all_are_counted():
    log = LogRing(capacity=2)
    log.feed(b"1\n2\n3\n")
    assert log.lines == ["2", "3"]
    assert log.line_count == 3


def test_a_line_without_an_end_takes_no_more_memory_than_a_line_may():
    log = LogRing()
    for _ in range(100):
        log.feed(b"x" * 1000)
    assert max(len(line) for line in log.lines) <= MAX_LINE_CHARACTERS


def test_broken_text_is_shown_as_far_as_it_can_be_read():
    log = LogRing()
    log.feed(b"a\xffb\n")
    assert log.lines == ["a\N{REPLACEMENT CHARACTER}b"]


def test_the_folders_of_the_person_are_cut_out():
    log = LogRing(hidden=(Path("/home/anna"), Path("/home/anna/My Models")))
    log.feed(b"open /home/anna/My Models/x.gguf and /home/anna/y\n")
    assert log.lines == ["open x.gguf and y"]
