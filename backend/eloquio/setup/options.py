"""What a person can say to `scripts/start`."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eloquio.setup.checkout import home_folder
from eloquio.setup.engine import Build

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8642


@dataclass(frozen=True)
class StartOptions:
    home: Path
    host: str | None
    port: int | None
    opens_browser: bool
    model_folders: tuple[Path, ...]
    is_lite: bool
    waits_for_worker: bool
    build: Build | None

    def serve_arguments(self) -> list[str]:
        """The flags of `eloquio serve`; what wasn't said is left to its settings."""
        arguments = ["--home", str(self.home)]
        if self.host is not None:
            arguments += ["--host", self.host]
        if self.port is not None:
            arguments += ["--port", str(self.port)]
        for folder in self.model_folders:
            arguments += ["--model-dir", str(folder)]
        if not self.opens_browser:
            arguments.append("--no-browser")
        return arguments

    def address(self, environment: Mapping[str, str] = os.environ) -> tuple[str, int]:
        """Where the server will listen, to be asked from this machine."""
        host = self.host or environment.get("ELOQUIO_HOST") or DEFAULT_HOST
        named = environment.get("ELOQUIO_PORT", "")
        # One that is no number is the server's to refuse.
        default = int(named) if named.isdecimal() else DEFAULT_PORT
        local = {"0.0.0.0": DEFAULT_HOST, "::": "::1", "": DEFAULT_HOST}
        return local.get(host, host), default if self.port is None else self.port


def parse_start_options(
    arguments: Sequence[str], environment: Mapping[str, str] = os.environ
) -> StartOptions:
    parsed = _parser().parse_args(arguments)
    return StartOptions(
        home=parsed.home.expanduser().absolute() if parsed.home else home_folder(environment),
        host=parsed.host,
        port=parsed.port,
        opens_browser=not parsed.no_browser,
        model_folders=tuple(folder.expanduser().absolute() for folder in parsed.model_dir),
        is_lite=parsed.lite,
        waits_for_worker=parsed.wait,
        build=Build.CUDA if parsed.cuda else Build.CPU if parsed.build else None,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/start",
        description="Makes this checkout ready, as far as it isn't, and starts Eloquio.",
        epilog="Settings can also be given as ELOQUIO_HOME, ELOQUIO_HOST, ELOQUIO_PORT, "
        "ELOQUIO_MODEL_DIRS and so on; LLAMA_SERVER_PATH names a llama-server of yours.",
        allow_abbrev=False,
    )
    parser.add_argument("--host", help="the address to listen at (127.0.0.1)")
    parser.add_argument("--port", type=_port, help="the port (8642); 0 takes any that is free")
    parser.add_argument("--no-browser", action="store_true", help="leave the browser alone")
    parser.add_argument("--home", type=Path, metavar="DIR", help="where everything is kept")
    parser.add_argument(
        "--model-dir",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="a folder with models; can be given several times",
    )
    worker = parser.add_mutually_exclusive_group()
    worker.add_argument(
        "--lite", action="store_true", help="without the torch environment (about 7 GB)"
    )
    worker.add_argument(
        "--wait", action="store_true", help="make the torch environment before serving"
    )
    engine = parser.add_mutually_exclusive_group()
    engine.add_argument(
        "--cuda", action="store_true", help="build a llama-server for NVIDIA GPUs; needs nvcc"
    )
    engine.add_argument(
        "--build", action="store_true", help="build a llama-server for this processor"
    )
    return parser


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{port} is no port: 0 to 65535")
    return port
