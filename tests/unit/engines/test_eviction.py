"""What has to stop so that a model fits: tables of residents, and what is decided."""

from pathlib import Path

import pytest

from eloquio.engines.eviction import Resident, place
from eloquio.engines.spec import EngineOptions, EngineSpec, MemoryPlan
from eloquio.errors import EngineBusy, ModelDoesNotFit

NATIVE = 32768


def spec(model="new", size=10, context=None, task="chat", native=NATIVE, device="cpu"):
    """A model whose weights take `size` bytes, and whose context takes one byte a token."""

    def memory_at(tokens):
        return MemoryPlan(size, tokens, 0, 0, device)

    length = context or native
    return EngineSpec(
        model=model,
        display_name=model,
        kind="llama_server",
        task=task,
        model_path=Path(f"{model}.gguf"),
        memory=memory_at(length),
        memory_at=memory_at,
        options=EngineOptions(context_length=context),
        context_length=length,
    )


def there(model, size=100, used=0.0, task="chat", **claims):
    return Resident(model=model, task=task, size_bytes=size, last_used=used, **claims)


def test_the_model_of_the_same_task_makes_room_once_the_new_one_is_ready():
    placement = place(spec(context=256), [there("old")], 1000)
    assert (placement.stop_first, placement.stop_after) == ((), ("old",))


def test_what_does_not_fit_beside_stops_first():
    placement = place(spec(context=256), [there("old", size=100)], 200)
    assert (placement.stop_first, placement.stop_after) == (("old",), ())


def test_on_an_accelerator_the_old_one_stops_first_whatever_is_free():
    placement = place(spec(context=256, device="CUDA0"), [there("old")], 10_000)
    assert placement.stop_first == ("old",)


def test_its_own_engine_always_stops_first():
    placement = place(spec(context=256), [there("new"), there("old")], 1000)
    assert (placement.stop_first, placement.stop_after) == (("new",), ("old",))


@pytest.mark.parametrize(
    ("resident", "terms"),
    [
        (there("old"), {"keep_others": True}),
        (there("old", task="embedding"), {}),
        (there("old", is_pinned=True), {}),
    ],
)
def test_what_may_stay_stays(resident, terms):
    placement = place(spec(context=256), [resident], 1000, **terms)
    assert (placement.stop_first, placement.stop_after) == ((), ())


def test_a_failed_engine_of_the_task_is_forgotten_even_where_others_are_kept():
    failed = there("old", size=0, is_settled=True)
    assert place(spec(context=256), [failed], 1000, keep_others=True).stop_first == ("old",)


def test_the_least_recently_used_make_room_and_no_more_than_needed():
    running = [there("third", used=3), there("first", used=1), there("second", used=2)]
    placement = place(spec(context=256), running, 100, keep_others=True)
    assert placement.stop_first == ("first", "second")
    assert placement.spec.warnings == (
        "first was unloaded to make room.",
        "second was unloaded to make room.",
    )


@pytest.mark.parametrize("claim", ["is_busy", "is_loading", "is_pinned"])
def test_one_that_is_taken_never_makes_room(claim):
    running = [there("first", used=1, **{claim: True}), there("second", used=2)]
    placement = place(spec(context=256), running, 200, keep_others=True)
    assert placement.stop_first == ("second",)


@pytest.mark.parametrize("claim", ["is_busy", "is_loading"])
def test_room_that_is_only_busy_is_another_answer_than_no_room(claim):
    with pytest.raises(EngineBusy, match="old"):
        place(spec(context=256), [there("old", **{claim: True})], 200, keep_others=True)
    with pytest.raises(ModelDoesNotFit):
        place(spec(context=2560), [there("old", **{claim: True})], 200, keep_others=True)


def test_a_pinned_model_that_is_in_the_way_is_named():
    with pytest.raises(ModelDoesNotFit, match="pinned old"):
        place(spec(context=256), [there("old", is_pinned=True)], 200)


def test_force_ends_answers_but_takes_nothing_pinned():
    busy, pinned = there("busy", is_busy=True), there("pinned", is_pinned=True)
    placement = place(spec(context=256), [pinned, busy], 200, keep_others=True, force=True)
    assert placement.stop_first == ("busy",)


def test_a_busy_model_that_would_be_replaced_refuses_the_load_unless_forced():
    with pytest.raises(EngineBusy, match="old"):
        place(spec(context=256), [there("old", is_busy=True)], 1000)
    forced = place(spec(context=256), [there("old", is_busy=True)], 1000, force=True)
    assert forced.stop_after == ("old",)


def test_a_reload_is_refused_while_its_own_engine_answers():
    with pytest.raises(EngineBusy, match="new"):
        place(spec(context=256), [there("new", is_busy=True)], 1000)


def test_a_context_that_was_asked_for_is_given_or_refused():
    assert place(spec(context=500), [], 510).spec.context_length == 500
    with pytest.raises(ModelDoesNotFit):
        place(spec(context=500), [], 509)


def test_a_context_that_nobody_asked_for_is_halved_until_it_fits_and_that_is_said():
    placed = place(spec(), [], 9000).spec
    assert placed.context_length == 8192
    assert placed.memory.kv_bytes == 8192
    [warning] = placed.warnings
    assert "32768 tokens" in warning
    assert "8192" in warning


def test_nothing_is_stopped_for_a_longer_context_than_a_comfortable_one():
    running = [there("kept", size=50_000)]
    placement = place(spec(), running, 9000, keep_others=True)
    assert placement.stop_first == ()
    assert placement.spec.context_length == 8192


def test_idle_models_are_stopped_for_a_comfortable_context():
    running = [there("kept", size=5000)]
    placement = place(spec(), running, 5000, keep_others=True)
    assert placement.stop_first == ("kept",)
    assert placement.spec.context_length == 8192


def test_what_does_not_fit_at_all_stops_nothing():
    with pytest.raises(ModelDoesNotFit, match="256 tokens"):
        place(spec(size=5000), [there("old", size=10)], 100, keep_others=True)
