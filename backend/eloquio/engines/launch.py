"""Becomes an engine that can't outlive the process that asked for it.

Run as a script by the interpreter itself (`python -I -S launch.py PARENT COMMAND…`), so it may
import only the standard library's cheap parts.

On Linux the kernel kills the engine with its parent. Elsewhere this process stays between the two:
its standard input is a pipe from the parent, whose end of file means that the parent is gone.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1
# As a shell says of a program that is there but isn't one.
CANNOT_RUN = 126


def main(arguments: list[str]) -> None:
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        _bind_to_parent(parent)
        try:
            os.execv(command[0], command)
        except OSError as failure:
            sys.stderr.write(f"{failure.strerror}\n")
            sys.exit(CANNOT_RUN)
    sys.exit(watch(command))


def _bind_to_parent(parent: int) -> None:
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    # The parent may have died before the call took effect.
    if os.getppid() != parent:
        sys.exit(1)


def watch(command: list[str]) -> int:
    """Runs `command` until it ends, or until standard input does; answers its exit status."""
    # The parent signals the whole group, of which the engine is a part: only the engine reacts.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    engine = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def end_with_parent() -> None:
        while os.read(0, 4096):
            pass
        if os.getpgrp() == os.getpid():
            # With all that it started, and this process too: nobody waits for it any more.
            os.killpg(0, signal.SIGKILL)
        engine.kill()

    threading.Thread(target=end_with_parent, daemon=True).start()
    status = engine.wait()
    if status < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler to take away
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    main(sys.argv[1:])
