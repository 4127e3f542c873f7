"""The one SQLite file: opened, brought up to date, and saved before it is changed."""

import asyncio
import sqlite3
from importlib import resources
from pathlib import Path

import aiosqlite
import structlog

from eloquio.errors import DatabaseUnreadable

# What a later write takes without the file growing is left to it.
_FREE_PAGES_LEFT = 256
# At once: a few milliseconds, between which others write.
_PAGES_AT_ONCE = 1000
_INCREMENTAL = 2
_LARGEST_LOG_BYTES = 4 * 2**20

_MIGRATIONS = resources.files("eloquio.store") / "migrations"

logger = structlog.get_logger(__name__)


async def open_database(home: Path) -> aiosqlite.Connection:
    """A connection to `home/eloquio.db`, its schema current; the file is made if there is none.

    Raises DatabaseUnreadable for one that is damaged or locked by another program.
    """
    path = await asyncio.to_thread(_private_file, home)
    database = await aiosqlite.connect(path, isolation_level=None)
    try:
        # Before anything is written: later it takes effect only where all is written anew.
        await database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        await database.execute("PRAGMA journal_mode = WAL")
        await database.execute(f"PRAGMA journal_size_limit = {_LARGEST_LOG_BYTES}")
        await database.execute("PRAGMA synchronous = NORMAL")
        await database.execute("PRAGMA foreign_keys = ON")
        await database.execute("PRAGMA busy_timeout = 5000")
        await _migrate(database, path)
        await _make_shrinkable(database)
    except BaseException as failure:
        await database.close()
        if isinstance(failure, sqlite3.DatabaseError):
            raise DatabaseUnreadable(
                "Eloquio's database can't be used.", evidence=str(failure)
            ) from failure
        raise
    return database


def _private_file(home: Path) -> Path:
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = home / "eloquio.db"
    path.touch(mode=0o600)
    return path


async def _migrate(database: aiosqlite.Connection, path: Path) -> None:
    scripts = sorted(entry.name for entry in _MIGRATIONS.iterdir() if entry.name.endswith(".sql"))
    version = await _version(database)
    for number, name in enumerate(scripts, start=1):
        if number <= version:
            continue
        if version:
            copy = path.with_name(f"eloquio.before-{number:04d}.db")
            copy.unlink(missing_ok=True)
            await database.execute("VACUUM INTO ?", (str(copy),))
        script = (_MIGRATIONS / name).read_text()
        await database.executescript(
            f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;"
        )
        logger.info("database_migrated", script=name)


async def give_back(database: aiosqlite.Connection) -> None:
    """The disk gets the pages of what was deleted, some at a time, but a few."""
    free, before = await _number(database, "freelist_count"), None
    # None less than before: it can't be shrunk.
    while free > _FREE_PAGES_LEFT and free != before:
        # All its rows are read, since it gives back a page with each.
        await database.execute_fetchall(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
        free, before = await _number(database, "freelist_count"), free
    if before is not None:
        # The file itself is cut once the log is written into it.
        await database.execute_fetchall("PRAGMA wal_checkpoint(PASSIVE)")


async def _make_shrinkable(database: aiosqlite.Connection) -> None:
    """One that an earlier version made is written anew, once."""
    if await _number(database, "auto_vacuum") == _INCREMENTAL:
        return
    try:
        await database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        await database.execute("VACUUM")
    except sqlite3.OperationalError as error:
        # There may be no place for a second one: it is as good as it was.
        logger.warning("database_not_shrinkable", reason=str(error))


async def _version(database: aiosqlite.Connection) -> int:
    return await _number(database, "user_version")


async def _number(database: aiosqlite.Connection, pragma: str) -> int:
    async with database.execute(f"PRAGMA {pragma}") as cursor:
        row = await cursor.fetchone()
    return int(row[0]) if row else 0
