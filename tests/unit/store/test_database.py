"""The database file: made, brought up to date, saved before a change, and refused when damaged."""

import asyncio
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from eloquio.errors import DatabaseUnreadable
from eloquio.store import database
from eloquio.store.database import give_back, open_database

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


async def fill(connection, megabytes: int) -> None:
    await connection.execute("CREATE TABLE notes (number INTEGER PRIMARY KEY, text BLOB) STRICT")
    for number in range(megabytes):
        await connection.execute("INSERT INTO notes VALUES (?, zeroblob(1000000))", (number,))


def size_of(home: Path) -> int:
    return sum(path.stat().st_size for path in home.glob("eloquio.db*"))


async def test_the_disk_gets_back_what_was_deleted(tmp_path):
    connection = await open_database(tmp_path)
    await fill(connection, megabytes=40)
    await connection.execute("DELETE FROM notes WHERE number < 38")
    full = size_of(tmp_path)

    await give_back(connection)
    await connection.close()

    assert full > 40_000_000
    assert size_of(tmp_path) < 5_000_000
    with closing(sqlite3.connect(tmp_path / "eloquio.db")) as left:
        assert left.execute("SELECT count(*), sum(length(text)) FROM notes").fetchone() == (
            2,
            2_000_000,
        )
        assert left.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_others_write_while_the_disk_gets_it_back(tmp_path):
    connection = await open_database(tmp_path)
    await fill(connection, megabytes=20)
    await connection.execute("DELETE FROM notes")
    given_back = asyncio.create_task(give_back(connection))
    written = 0
    while not given_back.done():
        await connection.execute("INSERT INTO notes VALUES (?, x'00')", (written,))
        written += 1
    await given_back
    assert written > 3
    await connection.close()


async def test_a_database_of_an_earlier_version_can_be_shrunk_too(tmp_path):
    await opened_and_closed(tmp_path)
    with closing(sqlite3.connect(tmp_path / "eloquio.db", isolation_level=None)) as old:
        for pragma in ("journal_mode = DELETE", "auto_vacuum = NONE"):
            old.execute(f"PRAGMA {pragma}")
        old.execute("INSERT INTO preferences VALUES ('kept', '1')")
        old.execute("VACUUM")
        assert old.execute("PRAGMA auto_vacuum").fetchone() == (0,)

    connection = await open_database(tmp_path)
    await fill(connection, megabytes=5)
    await connection.execute("DELETE FROM notes")
    await give_back(connection)
    await connection.close()

    assert size_of(tmp_path) < 2_000_000
    with closing(sqlite3.connect(tmp_path / "eloquio.db")) as current:
        assert current.execute("SELECT value FROM preferences").fetchall() == [("1",)]


async def test_one_that_cannot_be_shrunk_is_left_as_it_is(tmp_path):
    connection = await open_database(tmp_path)
    await connection.execute("PRAGMA journal_mode = DELETE")
    await connection.execute("PRAGMA auto_vacuum = NONE")
    await connection.execute("VACUUM")
    await fill(connection, megabytes=5)
    await connection.execute("DELETE FROM notes")
    async with asyncio.timeout(30):
        await give_back(connection)
    await connection.close()
    assert size_of(tmp_path) > 5_000_000
