"""Speaks just enough of llama-server to be supervised, and fails as it is told.

It serves to make a part fail on purpose. What it is told stands in the program that `write` makes,
and for one model in a file beside that model's. What happens to it, it notes beside the program.
It starts at every load, so it imports only the standard library's cheap parts.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from eloquio.doctor.faults.behaviour import Behaviour
from eloquio.doctor.faults.conversation import Conversation
from eloquio.doctor.faults.program import FOR_EVER_SECONDS, argument, die_by, note, notes

HELP = """--model --alias --host --port --api-key-file --ctx-size --parallel --kv-unified --fit
--gpu-layers --cache-type-k --cache-type-v --mmproj --flash-attn --jinja --slots --log-colors"""
_LINE = b"a line of the log, one of very many, as a server writes that was told to tell all\n"
_MEBIBYTE = 2**20
_PR_SET_PDEATHSIG = 1


def write(path: Path, **behaviour: object) -> Path:
    """Make `path` a llama-server that behaves so: see `Behaviour` for the words."""
    import shlex  # which the program itself does without

    Behaviour(behaviour)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        # For a shell this starts Python, and for Python it is a text: a first line that names
        # Python itself could hold no space.
        "#!/bin/sh\n"
        f"''':'\nexec {shlex.quote(sys.executable)} -IS \"$0\" \"$@\"\n'''\n"
        f"import sys; sys.path.append({str(Path(__file__).parents[3])!r})\n"
        f"from eloquio.doctor.faults import stand_in; stand_in.main({behaviour!r})\n",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


def write_for(model: Path, **behaviour: object) -> None:
    """Make whichever stand-in runs `model` behave so, from its next start on."""
    Behaviour(behaviour)
    replacement = model.with_suffix(".replacement")
    replacement.write_text(json.dumps(behaviour))
    replacement.replace(model.with_suffix(".json"))


# Below is what the program itself does -------------------------------------------------------


def main(words: dict[str, Any]) -> None:
    if len(sys.argv) == 2:
        time.sleep(words.get("describes_late_seconds", 0))
        is_help = sys.argv[1] == "--help"
        _print(HELP if is_help else "version: 1 (stand-in)\nAvailable devices:")
        return
    behaviour = Behaviour(words | _words_for(argument("--model")))
    earlier_starts = sum(
        told["event"] == "start" and told["model"] == argument("--alias")
        for told in notes(Path(sys.argv[0]))
    )
    note("start", arguments=sys.argv[1:])
    _arrange(behaviour)
    _write_log(behaviour)
    _end_if_told(behaviour, earlier_starts)
    held = _grown_to(behaviour.grows_bytes)
    _take_time(behaviour)
    _serve(_listener(), behaviour, held)


def _words_for(model: str) -> dict[str, Any]:
    try:
        words: dict[str, Any] = json.loads(Path(model).with_suffix(".json").read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return words


def _arrange(behaviour: Behaviour) -> None:
    """How it takes signals, and whom it brings along."""
    if behaviour.ignores_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif behaviour.stops_late_seconds:
        signal.signal(signal.SIGTERM, lambda *_: _end_late(behaviour.stops_late_seconds))
    if behaviour.outlives_parent:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, 0, 0, 0, 0)
    if behaviour.forks:
        _fork(has_session=False)
    if behaviour.forks_session:
        _fork(has_session=True)


def _fork(*, has_session: bool) -> None:
    if os.fork() != 0:
        return
    if has_session:
        os.setsid()
    note("fork")
    time.sleep(FOR_EVER_SECONDS)
    os._exit(0)


def _end_late(seconds: float) -> NoReturn:
    time.sleep(seconds)
    os._exit(0)


def _write_log(behaviour: Behaviour) -> None:
    for line in behaviour.says:
        _print(line)
    if behaviour.writes_garbage:
        _print("\x00\x1b[2J\r\x7f" * 20)
        for piece in (os.urandom(4096), b"x" * 3_000_000, b"\xff\xfe\n" * 100):
            _write_all(piece)
    for _ in range(behaviour.floods_bytes // (len(_LINE) * 1000)):
        _write_all(_LINE * 1000)
    if behaviour.closes_log:
        os.close(1)
        os.close(2)


def _print(text: str) -> None:
    _write_all(text.encode() + b"\n")


def _write_all(output: bytes) -> None:
    while output:
        output = output[os.write(1, output) :]


def _end_if_told(behaviour: Behaviour, earlier_starts: int) -> None:
    command = " ".join(sys.argv)
    if behaviour.fails_with and behaviour.fails_with[0] in command:
        _fail(behaviour.fails_with[1])
    if behaviour.fails_without and behaviour.fails_without[0] not in command:
        _fail(behaviour.fails_without[1])
    if earlier_starts < behaviour.fails_starts:
        _fail("error: not this time")
    if behaviour.dies_by:
        die_by(behaviour.dies_by)
    if behaviour.exits is not None:
        sys.exit(behaviour.exits)


def _fail(line: str) -> NoReturn:
    _print(line)
    sys.exit(1)


def _grown_to(size_bytes: int) -> bytearray:
    held = bytearray()
    while len(held) < size_bytes:
        held += b"\x01" * _MEBIBYTE
        time.sleep(0.05)
    return held


def _take_time(behaviour: Behaviour) -> None:
    _repeat(lambda: _say_and_wait("loading", 0.05), behaviour.moves_seconds)
    _repeat(lambda: sum(range(10_000)), behaviour.computes_seconds)
    if behaviour.hangs:
        time.sleep(FOR_EVER_SECONDS)
    if behaviour.chatters:
        _go_on(lambda: _say_and_wait("still at it", 0.1))
    if behaviour.toils:
        _go_on(lambda: sum(range(10_000)))


def _go_on(step: Callable[[], object]) -> None:
    """Beside everything else, to the end."""
    threading.Thread(target=_repeat, args=(step, FOR_EVER_SECONDS), daemon=True).start()


def _repeat(step: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        step()


def _say_and_wait(line: str, seconds: float) -> None:
    _print(line)
    time.sleep(seconds)


def _listener() -> socket.socket:
    host = argument("--host")
    if host.endswith(".sock"):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(host)
    else:
        listener = socket.socket()
        listener.bind((host, int(argument("--port"))))
    listener.listen(128)
    return listener


def _serve(listener: socket.socket, behaviour: Behaviour, held: bytearray) -> NoReturn:
    """For ever, with `held` in memory."""
    ready_at = time.monotonic() + behaviour.ready_after_seconds
    while True:
        connection, _ = listener.accept()
        conversation = Conversation(connection, behaviour, ready_at)
        threading.Thread(target=conversation.hold, daemon=True).start()
