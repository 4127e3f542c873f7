"""Tries every case on a server and tells which failed: `python -m conformance --help`."""

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatch

from conformance.all_cases import CASES
from conformance.case import NEEDS, Case
from conformance.target import Models, Target


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where no case failed, 1 where one did, 2 where none was tried."""
    options = _parse(arguments)
    chosen = [case for case in CASES if _is_wanted(case, options.only)]
    outcomes: Counter[str] = Counter()
    models = Models(options.model, options.embedding_model, options.thinking_model)
    with Target(options.base_url, models, lacks=options.lacks) as target:
        for case in chosen:
            outcome = tell(case, target)
            outcomes[outcome] += 1
    say(", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()) or "no such case")
    if outcomes["failed"]:
        return 1
    return 0 if outcomes["ok"] else 2


def say(line: str) -> None:
    # At once, also into a pipe: a case may take long.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def tell(case: Case, target: Target) -> str:
    """What became of the case: ok, failed or lacking; said in a line, and why in those below."""
    if missing := case.needs & target.lacks:
        say(f"lacking   {case.name}  ({', '.join(sorted(missing))})")
        return "lacking"
    started = time.monotonic()
    try:
        case.trial(target)
    except Exception as error:
        say(f"failed    {case.name}")
        say(_why(error))
        return "failed"
    say(f"ok        {case.name}  ({time.monotonic() - started:.2f} s)")
    return "ok"


def _why(error: Exception) -> str:
    """The line of the case at which it failed, and what with."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "conformance" in frame.filename
    ]
    where = [f"          {frame.filename}:{frame.lineno}: {frame.line}" for frame in frames[-1:]]
    what = f"          {type(error).__name__}: {error}".replace("\n", "\n          ")
    return "\n".join([*where, what])


def _is_wanted(case: Case, only: Sequence[str]) -> bool:
    return not only or any(fnmatch(case.name, pattern) for pattern in only)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument("--base-url", required=True, help="the server's, without /v1")
    parser.add_argument("--model", required=True, help="one that chats and can call tools")
    parser.add_argument("--embedding-model", help="one for embeddings; without it those are left")
    parser.add_argument("--thinking-model", help="one that thinks; without it that is left")
    parser.add_argument(
        "--lacks", nargs="*", default=[], choices=NEEDS, metavar="NEED", help=", ".join(NEEDS)
    )
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="as chat/*stop*")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
