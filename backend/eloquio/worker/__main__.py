"""The worker's process: `python -m eloquio.worker --plan FILE --socket PATH`."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from eloquio.worker.server import create_app
from eloquio.worker_plan import WorkerPlan


def main() -> None:
    parser = argparse.ArgumentParser(prog="eloquio.worker")
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--socket", help="listen on this UNIX socket")
    parser.add_argument("--port", type=int, help="listen on this port of 127.0.0.1 instead")
    parser.add_argument("--key-file", type=Path, help="the bearer key that every request needs")
    options = parser.parse_args()
    key = options.key_file.read_text() if options.key_file else None
    app = create_app(WorkerPlan.read(options.plan), key)
    config = uvicorn.Config(
        app,
        uds=options.socket,
        host="127.0.0.1",
        port=options.port or 0,
        log_level="warning",
    )
    _Server(config).run()


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal ends the process at once: there is nothing to keep, and a step takes long."""
        yield


if __name__ == "__main__":
    main()
