"""What is told of a load, and of the models on disk, while engines come and go."""

import asyncio

import pytest

from eloquio.doctor.faults import stand_in
from eloquio.models import describe
from fixtures.gguf_files import write_model
from fixtures.pools import load, pool_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings(settings, tmp_path):
    program = stand_in.write(tmp_path / "llama-server")
    return settings.model_copy(update={"llama_server_path": program})


@pytest.fixture
async def pool(settings, folder):
    write_model(folder / "one.gguf")
    write_model(folder / "other.gguf")
    async with pool_of(settings.model_copy(update={"model_dirs": (folder,)})) as pool:
        yield pool


async def test_a_reload_that_waits_is_not_called_ready_for_the_engine_before_it(pool):
    await load(pool, "one")
    assert describe.load_progress(pool).phase == "ready"

    reload = asyncio.create_task(load(pool, "one", max_seq_length=1024))
    await asyncio.sleep(0)
    waiting = describe.load_progress(pool)
    await reload

    assert (waiting.model, waiting.phase) == ("one", "resolving")
    assert describe.load_progress(pool).phase == "ready"


async def test_each_card_says_what_became_of_its_model(pool, catalog):
    def statuses():
        cards = describe.model_cards(catalog.scan(), describe.in_memory(pool))
        return {card.id: card.status for card in cards}

    assert statuses() == {"one": "on_disk", "other": "on_disk"}
    loading = asyncio.create_task(load(pool, "other"))
    while statuses()["other"] == "on_disk":
        await asyncio.sleep(0)
    assert statuses() == {"other": "loading", "one": "on_disk"}
    await loading
    assert list(statuses().items()) == [("other", "loaded"), ("one", "on_disk")]


async def test_a_listener_hears_of_no_change_too(pool):
    heard = pool.changed.watch(lambda: describe.load_progress(pool), 0.01)

    assert [await anext(heard), await anext(heard)] == [describe.load_progress(pool)] * 2
