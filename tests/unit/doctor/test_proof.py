"""The last check: a real engine has to give a real answer."""

import asyncio

import pytest

from eloquio.doctor.check import Check
from eloquio.doctor.faults import stand_in
from eloquio.doctor.proof import answers
from eloquio.settings import Settings


def prove(settings: Settings) -> Check:
    return asyncio.run(answers(settings))


def test_the_engine_of_this_machine_knows_the_capital_of_france(settings):
    check = prove(settings)
    assert check.verdict == "ok", check
    assert "Paris" in check.sentence
    assert "tokens a second" in check.sentence


@pytest.fixture
def with_engine(settings, tmp_path):
    """The settings, with an engine that behaves so."""

    def with_engine(**behaviour: object) -> Settings:
        program = stand_in.write(tmp_path / "llama-server", **behaviour)
        return settings.model_copy(update={"llama_server_path": program})

    return with_engine


def test_an_engine_that_dies_while_it_answers_is_told_with_its_end(with_engine):
    check = prove(with_engine(streams=["The cap"], then="crash"))
    assert check.verdict == "fail"
    assert "SIGSEGV" in f"{check.sentence} {check.evidence}"


def test_an_engine_that_tells_no_times_is_judged_by_its_answer(with_engine):
    completion = {"choices": [{"message": {"content": "It is London."}}]}
    check = prove(with_engine(refuses=(200, completion)))
    assert (check.verdict, "London" in check.sentence) == ("fail", True)
    assert "--build" in check.next_step


def test_an_engine_that_refuses_is_told_with_its_words(with_engine):
    check = prove(with_engine(refuses=(503, {"error": "no slot is free"})))
    assert (check.verdict, check.sentence) == ("fail", "The engine said 503.")
    assert "no slot is free" in check.evidence
