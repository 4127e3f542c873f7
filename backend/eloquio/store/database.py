"""The one SQLite file: opened, brought up to date, and saved before it is changed."""

import asyncio
import sqlite3
from importlib import resources
from pathlib import Path

import aiosqlite
import structlog

from eloquio.errors import DatabaseUnreadable

_MIGRATIONS = resources.files("eloquio.store") / "migrations"

logger = structlog.get_logger(__name__)


async def open_database(home: Path) -> aiosqlite.Connection:
    """A connection to `home/eloquio.db`, its schema current; the file is made if there is none.

    Raises DatabaseUnreadable for one that is damaged or locked by another program.
    """
    path = await asyncio.to_thread(_private_file, home)
    database = await aiosqlite.connect(path, isolation_level=None)
    try:
        await database.execute("PRAGMA journal_mode = WAL")
        await database.execute("PRAGMA synchronous = NORMAL")
        await database.execute("PRAGMA foreign_keys = ON")
        await database.execute("PRAGMA busy_timeout = 5000")
        await _migrate(database, path)
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


async def _version(database: aiosqlite.Connection) -> int:
    async with database.execute("PRAGMA user_version") as cursor:
        row = await cursor.fetchone()
    return int(row[0]) if row else 0
