"""Speaks just enough of llama-server to be supervised, and fails as it is told.

It serves to make a part fail on purpose. What it is told stands in the program that `write` makes.
"""

import json
import os
import signal
import socketserver
import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

HELP = "--model --alias --host --port --ctx-size --fit --jinja --api-key-file --slots"


def write(path: Path, **behaviour: object) -> Path:
    """Make `path` a llama-server that behaves so: see `Behaviour` for the words."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!{sys.executable} -IS\n"
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"import llama_server; llama_server.main({behaviour!r})\n"
    )
    path.chmod(0o755)
    return path


def main(behaviour: dict) -> None:
    if "--help" in sys.argv:
        print(HELP)
        return
    if "--version" in sys.argv or "--list-devices" in sys.argv:
        print("version: 1 (stand-in)\nAvailable devices:")
        return
    for line in behaviour.get("says", []):
        print(line, flush=True)
    if behaviour.get("ignores_sigterm"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if behaviour.get("forks") and os.fork() == 0:
        time.sleep(600)
    if "dies_by" in behaviour:
        os.kill(os.getpid(), behaviour["dies_by"])
    if "exits" in behaviour:
        sys.exit(behaviour["exits"])
    _move_for(behaviour.get("moves_seconds", 0))
    if behaviour.get("hangs"):
        time.sleep(600)
    _serve(behaviour)


def _move_for(seconds: float) -> None:
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        print("loading", flush=True)
        time.sleep(0.05)


def _argument(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1]


def _serve(behaviour: dict) -> None:
    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Says nothing of who left before the answer: an engine's last words are its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def address_string(self) -> str:
            return "socket"

        def do_GET(self) -> None:
            alias = behaviour.get("alias", _argument("--alias"))
            self._answer(
                200,
                ({} if alias is None else {"model_alias": alias})
                | {
                    "total_slots": 1,
                    "default_generation_settings": {"n_ctx": behaviour.get("context", 8192)},
                    "chat_template": "{{ messages }}",
                },
            )

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            if "refuses" in behaviour:
                self._answer(*behaviour["refuses"])
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for event in behaviour.get("streams", []):
                self._chunk(event.encode())
            match behaviour.get("then"):
                case "crash":
                    signal.raise_signal(signal.SIGSEGV)
                case "hang":
                    time.sleep(600)
            self._chunk(b"")

        def _chunk(self, body: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
            self.wfile.flush()

        def _answer(self, status: int, body: object) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            pass

    Server(_argument("--host"), Handler).serve_forever()
