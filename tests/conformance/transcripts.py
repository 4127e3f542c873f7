"""Golden transcripts: what goes over the wire, byte for byte but for what differs each time.

`python -m conformance.transcripts --write` makes those of `tests/wire/golden` anew.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import httpx2 as httpx

from conformance.exchanges import REAL, SCENES, Exchange, real_server, staged_server
from eloquio.setup.checkout import Checkout

GOLDEN = Path(__file__).parents[1] / "wire" / "golden"
_HEADERS = ("content-type", "cache-control", "x-accel-buffering")
_ID = re.compile(r'("(?:\w+_)?id": ?)"(?:([a-z]+)([-_]))?[^"]+"')
_NUMBERS = re.compile(
    r'("(?:created|created_at|completed_at|cached_tokens|logprob)": ?)-?[\d.]+(?:e-?\d+)?'
)
_TIMINGS = re.compile(r',?"timings": ?\{[^}]*\}')
_FINGERPRINT = re.compile(r'("system_fingerprint": ?)"[^"]*"')


def transcript(url: str, exchange: Exchange) -> str:
    """The request, and the reply as far as it is the same each time."""
    asked = json.dumps(exchange.body, indent=2, ensure_ascii=False)
    head = [f"POST /v1{exchange.path}", asked, ""]
    with httpx.Client(base_url=f"{url}/v1", timeout=60) as client:
        reply = client.post(exchange.path, json=exchange.body)
        if exchange.then:
            head += [f"GET /v1{exchange.then}", ""]
            reply = client.get(exchange.then.format(id=reply.json()["id"]))
    head += [str(reply.status_code)]
    head += [f"{name}: {reply.headers[name]}" for name in _HEADERS if name in reply.headers]
    return "\n".join([*head, "", normalised(reply.text)])


def normalised(text: str) -> str:
    """Without times; and each id as a number, the same wherever it comes again.

    A heartbeat is left out: whether it is there depends on how fast the machine is.
    """
    seen: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        kind = f"{match[2]}{match[3]}" if match[2] else "id-"
        return (
            f'{match[1]}"{seen.setdefault(match[0].partition(":")[2], f"{kind}{len(seen) + 1}")}"'
        )

    events = [event for event in text.split("\n\n") if not event.startswith(":")]
    text = _ID.sub(number, "\n\n".join(events))
    text = _FINGERPRINT.sub(r'\1""', _TIMINGS.sub("", text))
    return _NUMBERS.sub(r"\g<1>0", text)


def all_transcripts(folder: Path, real_model: Path) -> dict[str, str]:
    """By the exchange's name."""
    with real_server(folder / "real", real_model) as url:
        told = {exchange.name: transcript(url, exchange) for exchange in REAL}
    with staged_server(folder / "staged") as url:
        return told | {s.exchange.name: transcript(url, s.exchange) for s in SCENES}


def main(arguments: Sequence[str] | None = None) -> int:
    """1 where a transcript isn't as it is kept."""
    parser = argparse.ArgumentParser(prog="python -m conformance.transcripts", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep them as they are now")
    is_to_write = parser.parse_args(arguments).write
    with tempfile.TemporaryDirectory(prefix="transcripts-") as folder:
        told = all_transcripts(Path(folder), Checkout.here().kept_model)
    if is_to_write:
        GOLDEN.mkdir(exist_ok=True)
        for old in GOLDEN.glob("*.txt"):
            old.unlink()
        for name, text in told.items():
            (GOLDEN / f"{name}.txt").write_text(text, encoding="utf-8")
        return 0
    other = [name for name, text in told.items() if text != kept(name)]
    sys.stdout.writelines(f"{name} isn't as it is kept\n" for name in other)
    return 1 if other else 0


def kept(name: str) -> str:
    """The golden transcript; empty where there is none."""
    path = GOLDEN / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
