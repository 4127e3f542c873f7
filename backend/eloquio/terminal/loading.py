"""Loads a model and shows how far it is."""

import contextlib
from concurrent.futures import ThreadPoolExecutor, wait

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from eloquio.terminal.client import Client, Json, Refused
from eloquio.terminal.text import error_output, size

_LOOK_SECONDS = 0.2


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
    with (
        Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as progress,
        ThreadPoolExecutor(1) as thread,
    ):
        task = progress.add_task("asking", total=None, amount="")
        answer = thread.submit(client.post, "/v1/load", body)
        try:
            while not wait([answer], timeout=_LOOK_SECONDS).done:
                # If the server is gone, the answer says so.
                with contextlib.suppress(Refused):
                    _show(progress, task, client.get("/v1/load/progress"))
        except KeyboardInterrupt:
            # Again until it is answered: the first may come before the server has begun to load.
            while not answer.done():
                with contextlib.suppress(Refused):
                    client.post("/v1/unload", {"model_path": body["model_path"]})
                wait([answer], timeout=_LOOK_SECONDS)
            raise
        return answer.result()


def _show(progress: Progress, task: TaskID, step: Json) -> None:
    if step["phase"] in ("idle", "ready", "failed"):
        return
    total_bytes = step["total_bytes"] or None
    amount = f"{size(step['bytes'])} of {size(total_bytes)}" if total_bytes else ""
    progress.update(
        task,
        description=step["message"],
        completed=step["bytes"],
        total=total_bytes,
        amount=amount,
    )
