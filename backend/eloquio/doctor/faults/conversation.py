"""How a stand-in answers: health, properties and generations, as bytes on a connection."""

import json
import select
import signal
import socket
import sys
import time
from typing import Any

from eloquio.doctor.faults.behaviour import Behaviour
from eloquio.doctor.faults.program import FOR_EVER_SECONDS, argument, die_by, is_worker, note

_OF_A_WORKER = {"loader": "transformers", "kind": "text", "device": "cpu", "dtype": "float32"}


class Conversation:
    """One request of whoever connected, and its reply."""

    def __init__(self, connection: socket.socket, behaviour: Behaviour, ready_at: float) -> None:
        self._connection = connection
        self._behaviour = behaviour
        self._ready_at = ready_at

    def hold(self) -> None:
        with self._connection:
            try:
                self._answer(*self._read())
            except OSError:
                # Who asked has left, which a real server doesn't die of either.
                note("client_gone")

    def _read(self) -> tuple[str, dict[str, Any]]:
        with self._connection.makefile("rb") as source:
            method, path, _ = source.readline().decode().split(" ")
            length = 0
            while (line := source.readline().strip().lower()) != b"":
                if line.startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            body = source.read(length)
        return path if method == "GET" else "", json.loads(body) if body else {}

    def _answer(self, path: str, body: dict[str, Any]) -> None:
        told = self._behaviour
        if path == "/health":
            is_ready = time.monotonic() >= self._ready_at
            reply = {"status": "ok"} if is_ready else {"error": {"message": "Loading model"}}
            self._send(200 if is_ready else 503, reply, instead=told.health)
        elif path:
            self._send(200, self._properties(), instead=told.props)
        else:
            note("request")
            self._generate(is_stream=bool(body.get("stream")))

    def _properties(self) -> dict[str, Any]:
        alias = self._behaviour.alias
        who = {} if alias is None else {"model_alias": alias or argument("--alias")}
        return who | {
            **(_OF_A_WORKER if is_worker() else {}),
            "total_slots": 1,
            "default_generation_settings": {"n_ctx": self._behaviour.context},
            "chat_template": "{{ messages }}",
            "modalities": {"vision": "--mmproj" in sys.argv},
        }

    def _generate(self, *, is_stream: bool) -> None:
        told = self._behaviour
        if told.computes:
            sum(range(10**15))
        if told.never_answers:
            self._hang()
        elif told.refuses is not None:
            self._send(*told.refuses)
        elif (is_stream or told.streams) and not told.answers:
            self._stream()
        else:
            self._misbehave()
            choice = {"message": {"role": "assistant", "content": told.text}, "index": 0}
            reply = self._about() | {"choices": [choice | {"finish_reason": "stop"}]}
            self._send(200, reply, instead=told.answers)

    def _stream(self) -> None:
        told = self._behaviour
        self._send_head(200, "text/event-stream", "transfer-encoding: chunked")
        for event in told.streams or self._events():
            for piece in _pieces(event.encode(), told.bytes_at_once):
                self._send_chunk(piece)
            self._pause()
        self._misbehave()
        if told.then == "close":
            return
        if told.then == "error":
            error = {"code": 500, "message": "the stand-in broke on purpose"}
            self._send_chunk(f"data: {json.dumps({'error': error})}\n\n".encode())
        elif not told.streams and not told.then:
            self._send_chunk(self._event({}, "stop").encode() + b"data: [DONE]\n\n")
        self._send_chunk(b"")

    def _events(self) -> list[str]:
        words = [f"{word} " for word in self._behaviour.text.split(" ")] * self._behaviour.repeats
        return [self._event({"role": "assistant", "content": None})] + [
            self._event({"content": word}) for word in words
        ]

    def _event(self, delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        # Not in ASCII: a piece may end inside a character.
        return f"data: {json.dumps(self._about() | {'choices': [choice]}, ensure_ascii=False)}\n\n"

    def _about(self) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "created": 1, "model": argument("--alias")}

    def _misbehave(self) -> None:
        match self._behaviour.then:
            case "crash":
                die_by(signal.SIGSEGV)
            case "kill":
                die_by(signal.SIGKILL)
            case "hang":
                self._hang()

    def _hang(self) -> None:
        if self._behaviour.ignores_closed:
            time.sleep(FOR_EVER_SECONDS)
        while not self._is_left(0.1):
            pass
        raise ConnectionAbortedError

    def _pause(self) -> None:
        seconds = self._behaviour.pause_seconds
        if self._behaviour.ignores_closed:
            time.sleep(seconds)
        elif self._is_left(seconds):
            raise ConnectionAbortedError

    def _is_left(self, seconds: float) -> bool:
        """Waits so long, or until who asked has closed the connection."""
        readable, _, _ = select.select([self._connection], [], [], seconds)
        return bool(readable) and self._connection.recv(1, socket.MSG_PEEK) == b""

    def _send(self, status: int, body: object, *, instead: str = "") -> None:
        if instead:
            self._connection.sendall(instead.encode())
            return
        raw = json.dumps(body).encode()
        self._send_head(status, "application/json", f"content-length: {len(raw)}")
        self._connection.sendall(raw)

    def _send_head(self, status: int, content_type: str, *more: str) -> None:
        lines = [f"HTTP/1.1 {status} -", f"content-type: {content_type}", "connection: close"]
        self._connection.sendall("\r\n".join([*lines, *more, "", ""]).encode())

    def _send_chunk(self, body: bytes) -> None:
        self._connection.sendall(b"%x\r\n%s\r\n" % (len(body), body))


def _pieces(event: bytes, size: int) -> list[bytes]:
    size = size or len(event)
    return [event[start : start + size] for start in range(0, len(event), size)]
