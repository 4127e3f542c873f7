"""What the person chose is kept, whatever else is changed at the same time."""

import asyncio
import sqlite3

import pytest

from eloquio.store.database import open_database
from eloquio.store.preferences import Preferences, PreferenceStore

pytestmark = pytest.mark.anyio


@pytest.fixture
async def database(tmp_path):
    database = await open_database(tmp_path)
    yield database
    await database.close()


async def test_nothing_is_chosen_at_first(database):
    assert (await PreferenceStore.open(database)).current == Preferences()


async def test_what_was_chosen_is_kept_over_a_reopen(database, tmp_path):
    store = await PreferenceStore.open(database)
    await store.choose((tmp_path / "models",), load_on_start=False)
    await store.remember_load({"model_path": "a/b:Q4_K_M", "max_seq_length": 1024})

    other = await open_database(tmp_path)
    kept = (await PreferenceStore.open(other)).current
    await other.close()

    assert kept == store.current
    assert kept == Preferences(
        model_dirs=(tmp_path / "models",),
        load_on_start=False,
        last_load={"model_path": "a/b:Q4_K_M", "max_seq_length": 1024},
    )


async def test_fifty_changes_at_once_undo_nothing_of_each_other(database, tmp_path):
    store = await PreferenceStore.open(database)

    await asyncio.gather(
        *(store.remember_load({"model_path": str(number)}) for number in range(25)),
        *(store.choose((tmp_path / str(n),), load_on_start=False) for n in range(25)),
    )

    kept = (await PreferenceStore.open(database)).current
    assert kept == store.current
    assert kept.last_load == {"model_path": "24"}
    assert kept.model_dirs == (tmp_path / "24",)


async def test_a_change_that_cannot_be_written_is_not_taken_for_made(database):
    store = await PreferenceStore.open(database)
    await database.execute("PRAGMA query_only = ON")

    with pytest.raises(sqlite3.Error):
        await store.choose((), load_on_start=False)

    assert store.current == Preferences()


async def test_what_another_version_kept_does_not_stop_the_start(database):
    odd = """INSERT INTO preferences (name, value) VALUES ('preferences', '{"model_dirs": 3}')"""
    await database.execute(odd)
    store = await PreferenceStore.open(database)
    assert store.current == Preferences()
    await store.remember_load({"model_path": "a"})
    assert (await PreferenceStore.open(database)).current.last_load == {"model_path": "a"}
