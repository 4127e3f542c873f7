"""What goes over the wire is what it was: see `tests/wire/golden`.

A change that is meant is kept by `python -m conformance.transcripts --write`.
"""

import pytest

from conformance.exchanges import REAL, SCENES, real_server, staged_server
from conformance.transcripts import GOLDEN, kept, normalised, transcript

STAGED = tuple(scene.exchange for scene in SCENES)


@pytest.fixture(scope="module")
def real_url(tmp_path_factory, real_model):
    with real_server(tmp_path_factory.mktemp("real"), real_model) as url:
        yield url


@pytest.fixture(scope="module")
def staged_url(tmp_path_factory):
    with staged_server(tmp_path_factory.mktemp("staged")) as url:
        yield url


@pytest.mark.parametrize("exchange", REAL, ids=lambda exchange: exchange.name)
def test_the_real_engines_answer_goes_out_as_it_always_did(exchange, real_url):
    assert transcript(real_url, exchange) == kept(exchange.name)


@pytest.mark.parametrize("exchange", STAGED, ids=lambda exchange: exchange.name)
def test_a_staged_answer_goes_out_as_it_always_did(exchange, staged_url):
    assert transcript(staged_url, exchange) == kept(exchange.name)


def test_each_transcript_that_is_kept_is_of_an_exchange():
    names = {exchange.name for exchange in (*REAL, *STAGED)}
    assert {path.stem for path in GOLDEN.glob("*.txt")} == names


def test_an_id_is_the_same_number_wherever_it_comes_again():
    text = '{"id":"msg_a"}\n\n:\n\n{"item_id":"msg_a","id": "msg_b","created":17}'
    assert normalised(text) == ('{"id":"msg_1"}\n\n{"item_id":"msg_1","id": "msg_2","created":0}')
