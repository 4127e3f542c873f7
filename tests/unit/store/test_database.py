"""The database file: made, brought up to date, saved before a change, and refused when damaged."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from eloquio.errors import DatabaseUnreadable
from eloquio.store import database
from eloquio.store.database import open_database

pytestmark = pytest.mark.anyio

NEWEST = 2
LATER = f"{NEWEST + 1:04d}"


async def opened_and_closed(home: Path) -> None:
    await (await open_database(home)).close()


def tables_of(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


@pytest.fixture
def later_script(tmp_path, monkeypatch):
    """Adds another migration, as a later version of Eloquio would bring it."""

    def add(script: str) -> None:
        folder = tmp_path / "migrations"
        folder.mkdir()
        for known in database._MIGRATIONS.iterdir():
            (folder / known.name).write_text(known.read_text())
        (folder / f"{LATER}_notes.sql").write_text(script)
        monkeypatch.setattr(database, "_MIGRATIONS", folder)

    return add


async def test_an_empty_home_gets_a_private_database_of_the_newest_version(tmp_path):
    home = tmp_path / "new" / "home"

    await opened_and_closed(home)

    assert version_of(home / "eloquio.db") == NEWEST
    assert {"preferences", "runs", "run_events"} <= tables_of(home / "eloquio.db")
    assert stat.S_IMODE((home / "eloquio.db").stat().st_mode) == 0o600
    assert list(home.glob("*.before-*")) == []


async def test_a_copy_of_the_old_version_is_kept_before_it_is_changed(tmp_path, later_script):
    await opened_and_closed(tmp_path)
    later_script("CREATE TABLE notes (text TEXT) STRICT;")

    await opened_and_closed(tmp_path)

    assert version_of(tmp_path / "eloquio.db") == NEWEST + 1
    assert "notes" in tables_of(tmp_path / "eloquio.db")
    copy = tmp_path / f"eloquio.before-{LATER}.db"
    assert version_of(copy) == NEWEST
    assert tables_of(copy) == tables_of(tmp_path / "eloquio.db") - {"notes"}


async def test_a_change_that_fails_in_the_middle_changes_nothing(tmp_path, later_script):
    await opened_and_closed(tmp_path)
    later_script("CREATE TABLE notes (text TEXT) STRICT; INSERT INTO nowhere VALUES (1);")

    with pytest.raises(DatabaseUnreadable, match="can't be used"):
        await open_database(tmp_path)

    assert version_of(tmp_path / "eloquio.db") == NEWEST
    assert "notes" not in tables_of(tmp_path / "eloquio.db")


@pytest.mark.parametrize(
    "damage", [b"this was never a database", b"SQLite format 3\0" + b"x" * 5000]
)
async def test_a_damaged_database_says_what_to_do(tmp_path, damage):
    (tmp_path / "eloquio.db").write_bytes(damage)

    with pytest.raises(DatabaseUnreadable) as refusal:
        await open_database(tmp_path)

    assert "eloquio.db" in refusal.value.next_step
    assert "database" in refusal.value.evidence
    assert (tmp_path / "eloquio.db").read_bytes() == damage
