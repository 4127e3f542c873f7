"""Loads a model and shows how far it is."""

import asyncio
import contextlib
from collections.abc import Callable

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from eloquio.terminal.client import Client, Json, Refused
from eloquio.terminal.text import error_output, size

_FOLLOW_AGAIN_SECONDS = 0.2


def load(client: Client, body: Json) -> Json:
    """What `/v1/load` answers. Ctrl-C cancels the load, for every one who waits for it."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TimeElapsedColumn(),
    )
    console = error_output()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("asking", total=None, amount="")

        def show(step: Json) -> None:
            total_bytes = step.get("total_bytes") or None
            amount = f"{size(step['bytes'])} of {size(total_bytes)}" if total_bytes else ""
            progress.update(
                task,
                description=step.get("message") or step["phase"],
                completed=step.get("bytes", 0),
                total=total_bytes,
                amount=amount,
            )

        try:
            return asyncio.run(_load(client, body, show))
        except KeyboardInterrupt:
            with contextlib.suppress(Refused):
                client.post("/v1/unload", {"model_path": body["model_path"], "force": True})
            raise


async def _load(client: Client, body: Json, show: Callable[[Json], None]) -> Json:
    follower = asyncio.create_task(_follow(client, show))
    try:
        return await client.post_async("/v1/load", body)
    finally:
        follower.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await follower


async def _follow(client: Client, show: Callable[[Json], None]) -> None:
    """Show each step of the load under way, until cancelled."""
    while True:
        async for step in client.follow("/v1/load/progress"):
            if step.get("phase") not in (None, "idle", "failed"):
                show(step)
        # The stream ends when no load is under way: ours may be about to begin.
        await asyncio.sleep(_FOLLOW_AGAIN_SECONDS)
