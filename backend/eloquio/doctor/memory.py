"""The check of what Eloquio remembers."""

import sqlite3
from pathlib import Path

from eloquio.doctor.check import Check
from eloquio.errors import DatabaseUnreadable
from eloquio.settings import Settings
from eloquio.store.database import open_database
from eloquio.store.preferences import PreferenceStore


async def recall(settings: Settings) -> tuple[Check, tuple[Path, ...]]:
    """Whether the database can be read, and the model folders that were chosen on the page."""
    if not (settings.home / "eloquio.db").exists():
        return Check("database", "ok", "There is none yet: the first start makes it."), ()
    try:
        database = await open_database(settings.home)
        try:
            preferences = await PreferenceStore.open(database)
        finally:
            await database.close()
    except DatabaseUnreadable as error:
        return Check("database", "fail", error.message, error.next_step, error.evidence), ()
    except (sqlite3.Error, OSError) as error:
        sentence = f"eloquio.db can't be read: {error}."
        return Check("database", "fail", sentence, DatabaseUnreadable.next_step), ()
    return Check("database", "ok", "eloquio.db can be read."), preferences.current.model_dirs
