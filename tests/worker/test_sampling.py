"""How a token is chosen from a request's own fields."""

import math
from collections import Counter

import pytest
import torch

from eloquio.worker.sampling import Sampler, Sampling, sampling_of

LOGITS = torch.log(torch.tensor([0.5, 0.25, 0.15, 0.07, 0.03]))


def drawn(times: int = 400, logits=LOGITS, **fields) -> Counter[int]:
    sampler = Sampler(Sampling(seed=1, **fields), [])
    return Counter(sampler.choose(logits).token for _ in range(times))


def test_temperature_zero_takes_the_likeliest():
    assert drawn(temperature=0) == {0: 400}


def test_without_any_field_all_tokens_come_by_their_probability():
    counts = drawn(4000)
    for token, share in enumerate((0.5, 0.25, 0.15, 0.07, 0.03)):
        assert counts[token] / 4000 == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize(
    ("fields", "possible"),
    [
        ({"top_k": 2}, {0, 1}),
        ({"top_p": 0.7}, {0, 1}),
        ({"top_p": 0.76}, {0, 1, 2}),
        ({"top_p": 1e-9}, {0}),
        ({"min_p": 0.29}, {0, 1, 2}),
        ({"min_p": 1.0}, {0}),
        ({"top_k": 3, "top_p": 0.8}, {0, 1}),
        ({"top_k": 99}, {0, 1, 2, 3, 4}),
    ],
)
def test_only_the_tokens_that_a_field_leaves_are_drawn(fields, possible):
    assert drawn(2000, **fields).keys() == possible


def test_top_p_is_right_where_the_candidates_are_more_than_are_sorted_at_first():
    flat = torch.zeros(5000)
    flat[:2] = 8.0
    kept, _ = Sampler(Sampling(top_p=0.9), [])._candidates(flat)
    shares = torch.softmax(flat, 0).sort(descending=True).values
    wanted = int((shares.cumsum(0) - shares < 0.9).sum())
    assert len(kept) == wanted


def test_a_bias_forbids_and_forces():
    assert 0 not in drawn(logit_bias={0: -100.0})
    assert drawn(logit_bias={4: 100.0}) == {4: 400}


def test_the_repetition_penalty_counts_the_prompt_and_the_others_do_not():
    prompt = [0]
    greedy = Sampling(temperature=0, repetition_penalty=3.0)
    assert Sampler(greedy, prompt).choose(LOGITS + 3).token == 1
    present = Sampling(temperature=0, presence_penalty=2.0)
    sampler = Sampler(present, prompt)
    assert [sampler.choose(LOGITS).token for _ in range(2)] == [0, 1]


def test_the_frequency_penalty_grows_with_each_time():
    sampler = Sampler(Sampling(temperature=0, frequency_penalty=0.4), [])
    assert [sampler.choose(LOGITS).token for _ in range(4)] == [0, 0, 1, 0]


def test_the_same_seed_draws_the_same_and_the_logits_stay_as_they_were():
    logits = LOGITS.clone()
    one, two = Sampler(Sampling(seed=-3), []), Sampler(Sampling(seed=-3), [])
    assert [one.choose(logits) for _ in range(20)] == [two.choose(logits) for _ in range(20)]
    assert torch.equal(logits, LOGITS)


def test_a_log_probability_is_told_before_penalties_and_temperature():
    sampling = Sampling(temperature=0.3, top_k=1, logit_bias={1: 100.0}, top_logprobs=2)
    step = Sampler(sampling, []).choose(LOGITS)
    assert step.token == 1
    assert step.logprob == pytest.approx(math.log(0.25), abs=1e-5)
    assert [token for token, _ in step.alternatives] == [0, 1]


def test_a_field_that_is_left_out_is_as_recommended_and_one_that_is_given_counts():
    recommended = {"temperature": 0.2, "top_k": 20, "top_p": None}
    sampling = sampling_of({"top_k": -1, "repeat_penalty": 1.1, "min_p": None}, recommended)
    assert sampling == Sampling(temperature=0.2, top_k=0, repetition_penalty=1.1)
