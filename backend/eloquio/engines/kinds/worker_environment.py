"""The Python that a worker runs in: which one, whether it is there, and waiting until it is."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from eloquio.engines.exits import without_paths
from eloquio.engines.kinds import worker_state
from eloquio.engines.spec import EngineSpec
from eloquio.errors import WorkerMissing
from eloquio.settings import Settings
from eloquio.setup.checkout import Checkout

_POLL_SECONDS = 0.5


def python_of(spec: EngineSpec, settings: Settings, checkout: Checkout) -> Path:
    """The Python for `spec`; WorkerMissing where there is none, or not yet. Looks at the disk.

    One that a person names is taken as it is; the checkout's own has to be whole.
    """
    named = spec.worker_python or settings.worker_python
    if named is not None:
        python = named.expanduser()
        if not os.access(python, os.X_OK) or python.is_dir():
            raise WorkerMissing("The Python that was named for the worker can't be run.")
        return python
    if not worker_state.is_made(checkout, settings.home):
        raise WorkerMissing(
            "The torch environment, which runs this model, isn't there.",
            evidence=without_paths(worker_state.last_words(settings.home)) or None,
        )
    return checkout.worker_python


async def until_there(
    spec: EngineSpec,
    settings: Settings,
    tell: Callable[[str], None],
    checkout: Checkout | None = None,
) -> None:
    """Returns when `spec` can be started, as far as its Python is concerned.

    While the environment is being made it waits, and tells in a sentence how far that is. Where
    nobody is making it: WorkerMissing.
    """
    if spec.kind != "worker":
        return
    checkout = checkout or Checkout.here()
    while True:
        try:
            await asyncio.to_thread(python_of, spec, settings, checkout)
            return
        except WorkerMissing:
            # Looked at after that: it may have become whole between the two.
            is_coming = await asyncio.to_thread(worker_state.is_being_made, checkout)
            if spec.worker_python or settings.worker_python or not is_coming:
                await asyncio.to_thread(python_of, spec, settings, checkout)
                return
        words = await asyncio.to_thread(worker_state.last_words, settings.home)
        tell(f"Waiting for the torch environment: {without_paths(words) or 'it is being made'}")
        await asyncio.sleep(_POLL_SECONDS)
