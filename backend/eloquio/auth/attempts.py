"""Slows whoever guesses keys."""

import ipaddress
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from eloquio.errors import TooManyAttempts

LIMIT = 10
WINDOW_SECONDS = 60.0
# More addresses than this at once are no persons; the one that failed longest ago is forgotten.
_REMEMBERED = 4096


class Attempts:
    """The wrong keys of the last minute, by address."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def check(self, address: str) -> None:
        """Raise TooManyAttempts, with the time to wait, after ten wrong keys in a minute."""
        failures = self._failures.get(_network(address))
        if failures is None or len(failures) < LIMIT:
            return
        wait_seconds = failures[0] + WINDOW_SECONDS - self._clock()
        if wait_seconds > 0:
            raise TooManyAttempts(
                "Too many wrong keys came from this address.",
                retry_after_seconds=math.ceil(wait_seconds),
            )

    def note_failure(self, address: str) -> None:
        network = _network(address)
        self._failures.setdefault(network, deque(maxlen=LIMIT)).append(self._clock())
        self._failures.move_to_end(network)
        if len(self._failures) > _REMEMBERED:
            self._failures.popitem(last=False)


def _network(address: str) -> str:
    """An IPv6 host has 2^64 addresses of its own: what counts is its network."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if ip.version == 4:
        return address
    return str(ipaddress.IPv6Network((ip, 64), strict=False))
