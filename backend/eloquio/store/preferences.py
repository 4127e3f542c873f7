"""What the person chose on the page, kept over restarts."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import aiosqlite
import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

_READ = "SELECT value FROM preferences WHERE name = 'preferences'"
_WRITE = """
    INSERT INTO preferences (name, value) VALUES ('preferences', ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


logger = structlog.get_logger(__name__)


class WorkerEnv(BaseModel):
    """Another torch environment, for the models that one of these fits."""

    model_config = ConfigDict(frozen=True)

    python: Path
    transformers_version: str | None = None
    """As config.json tells it, or its beginning: 4.51 means 4.51.3 too."""
    architectures: tuple[str, ...] = ()
    """The names of their classes."""
    models: tuple[str, ...] = ()
    """Their public ids, in any case."""

    def fits(self, version: str | None, architectures: Iterable[str], ids: Iterable[str]) -> bool:
        """Whether it is for a model of this version and these classes, by any of these ids."""
        wanted = self.transformers_version
        if wanted and version and f"{version}.".startswith(f"{wanted}."):
            return True
        own = {name.casefold() for name in self.models}
        is_named = not own.isdisjoint(name.casefold() for name in ids)
        return is_named or not set(self.architectures).isdisjoint(architectures)


class Preferences(BaseModel):
    """`last_load` is the body of the load that is repeated at the next start."""

    model_config = ConfigDict(frozen=True)

    model_dirs: tuple[Path, ...] = ()
    load_on_start: bool = True
    worker_envs: tuple[WorkerEnv, ...] = ()
    """The first that fits a model is the one it runs in."""
    last_load: dict[str, Any] | None = None


class PreferenceStore:
    """The only writer; what it holds in memory is what the database holds."""

    def __init__(self, database: aiosqlite.Connection, current: Preferences) -> None:
        self._database = database
        self._current = current
        # One change after the other, so that none is undone by another that began with it.
        self._changing = asyncio.Lock()

    @classmethod
    async def open(cls, database: aiosqlite.Connection) -> "PreferenceStore":
        async with database.execute(_READ) as cursor:
            row = await cursor.fetchone()
        return cls(database, _readable(row[0]) if row else Preferences())

    @property
    def current(self) -> Preferences:
        return self._current

    async def choose(
        self,
        model_dirs: tuple[Path, ...],
        *,
        load_on_start: bool,
        worker_envs: tuple[WorkerEnv, ...] | None = None,
    ) -> Preferences:
        """Environments that aren't given stay as they are."""
        envs = self._current.worker_envs if worker_envs is None else worker_envs
        return await self._change(
            model_dirs=model_dirs, load_on_start=load_on_start, worker_envs=envs
        )

    async def remember_load(self, load: dict[str, Any]) -> Preferences:
        return await self._change(last_load=load)

    async def _change(self, **fields: object) -> Preferences:
        async with self._changing:
            changed = self._current.model_copy(update=fields)
            await self._database.execute(_WRITE, (changed.model_dump_json(),))
            self._current = changed
            return changed


def _readable(stored: str) -> Preferences:
    """What another version of Eloquio kept may mean nothing to this one: that is no reason not to
    start."""
    try:
        return Preferences.model_validate_json(stored)
    except ValidationError as error:
        logger.warning("preferences_unreadable", errors=error.error_count())
        return Preferences()
