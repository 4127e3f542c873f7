"""Sessions of browsers that gave the key once: a signed expiry in a cookie, nothing kept here.

A session ends with its key: whoever changes the key signs every browser out.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

COOKIE = "eloquio_session"
LIFETIME_SECONDS = 30 * 24 * 3600


class Sessions:
    def __init__(self, key: str, *, now: Callable[[], float] = time.time) -> None:
        self._secret = hmac.digest(key.encode(), b"eloquio session", hashlib.sha256)
        self._now = now

    def issue(self) -> str:
        """A cookie's value that is good for 30 days."""
        claim = f"{int(self._now()) + LIFETIME_SECONDS}.{secrets.token_hex(8)}"
        return f"{claim}.{self._signature(claim)}"

    def is_valid(self, value: str) -> bool:
        claim, _, signature = value.rpartition(".")
        # As bytes: compare_digest refuses a string with other than ASCII letters.
        if not hmac.compare_digest(self._signature(claim).encode(), signature.encode()):
            return False
        return int(claim.partition(".")[0]) > self._now()

    def _signature(self, claim: str) -> str:
        return hmac.new(self._secret, claim.encode(), hashlib.sha256).hexdigest()
