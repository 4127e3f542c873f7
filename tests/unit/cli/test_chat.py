"""Chatting in the terminal."""

import pytest

from eloquio.errors import EngineCrashed


@pytest.fixture(autouse=True)
def loaded(studio, server):
    studio.loaded = ["builtin/tiny"]


def messages(studio) -> list[list[tuple[str, str]]]:
    """Each question's messages, as the server got them."""
    return [
        [(message["role"], message["content"]) for message in body["messages"]]
        for path, body in studio.asked
        if path == "/v1/chat/completions"
    ]


ANSWER = "The capital is Paris."


def test_one_message_gets_one_answer_and_nothing_else(eloquio, studio):
    result = eloquio("chat", "--message", "What is the capital of France?")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{ANSWER}\n", "")
    assert messages(studio) == [[("user", "What is the capital of France?")]]
    assert studio.asked[-1][1]["model"] == "builtin/tiny"


def test_the_conversation_goes_on_with_what_was_said(eloquio, studio):
    result = eloquio("chat", input="First?\n\nSecond?\n/exit\nThird?\n")
    assert result.exit_code == 0
    assert messages(studio) == [
        [("user", "First?")],
        [("user", "First?"), ("assistant", ANSWER), ("user", "Second?")],
    ]


def test_it_ends_with_the_input(eloquio, studio):
    assert eloquio("chat", input="First?").exit_code == 0
    assert len(messages(studio)) == 1


def test_clear_forgets_what_was_said_but_not_the_system_prompt(eloquio, studio):
    eloquio("chat", input="/system Be brief, please.\nFirst?\n/clear\nSecond?\n")
    assert messages(studio) == [
        [("system", "Be brief, please."), ("user", "First?")],
        [("system", "Be brief, please."), ("user", "Second?")],
    ]


def test_a_system_prompt_can_be_given_and_taken_back(eloquio, studio):
    eloquio("chat", "--system", "Be brief.", input="First?\n/system\n/clear\nSecond?\n")
    assert messages(studio) == [
        [("system", "Be brief."), ("user", "First?")],
        [("user", "Second?")],
    ]


def test_a_command_that_does_not_exist_is_not_asked_of_the_model(eloquio, studio):
    result = eloquio("chat", input="/help\n")
    assert messages(studio) == []
    assert "/clear" in result.stderr


def test_a_question_that_failed_is_told_and_not_kept(eloquio, studio):
    studio.stream_error = EngineCrashed("The engine ended.", evidence="SIGSEGV")
    result = eloquio("chat", input="First?\nSecond?\n")
    assert "The engine ended." in result.stderr
    assert "SIGSEGV" in result.stderr
    assert messages(studio) == [[("user", "First?")], [("user", "Second?")]]


def test_one_message_that_fails_ends_with_status_one(eloquio, studio):
    studio.stream_error = EngineCrashed("The engine ended.")
    assert eloquio("chat", "-m", "First?").exit_code == 1


def test_a_model_that_is_not_loaded_is_loaded_first(eloquio, studio):
    assert eloquio("chat", "org/other:Q4_0", "-m", "First?").exit_code == 0
    assert [path for path, _ in studio.asked] == ["/v1/status", "/v1/load", "/v1/chat/completions"]
    assert studio.asked[-1][1]["model"] == "org/other:Q4_0"


def test_without_a_model_that_is_said(eloquio, studio):
    studio.loaded = []
    result = eloquio("chat", "-m", "First?")
    assert result.exit_code == 1
    assert "eloquio load" in result.stderr


def test_an_answer_cannot_steer_the_terminal(eloquio, studio):
    studio.answer = ["a\x1b[2Jb", "\x07\n\tc ✓"]
    assert eloquio("chat", "-m", "First?").stdout == "a[2Jb\n\tc ✓\n"
