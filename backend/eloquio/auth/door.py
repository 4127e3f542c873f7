"""Who comes in where a key is asked for: the key itself, or a browser that gave it once."""

import hmac
import time
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie

from eloquio.auth.attempts import Attempts
from eloquio.auth.page import sign_in_page
from eloquio.auth.sessions import COOKIE, Sessions
from eloquio.errors import EloquioError, KeyRefused, KeyRequired


class KeyDoor:
    """The guard's door. Ten wrong keys a minute close it to their address, even for the right one;
    a browser that is signed in still comes in."""

    def __init__(
        self,
        key: str,
        *,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._key = key.encode()
        self._sessions = Sessions(key, now=now)
        self._attempts = Attempts(clock=clock)

    def admit(
        self, *, authorization: str | None, api_key: str | None, cookie: str | None, address: str
    ) -> None:
        """Let a request pass by its headers, or raise KeyRequired, KeyRefused, TooManyAttempts."""
        session = _cookie_value(cookie)
        if session is not None and self._sessions.is_valid(session):
            return
        keys = [key for key in (_bearer(authorization), api_key) if key]
        if not keys:
            raise KeyRequired("This Eloquio asks for its key.")
        self._check_keys(keys, address)

    def sign_in(self, key: str, *, address: str) -> str:
        """The value of a session cookie for the right key; else as `admit`."""
        if not key:
            raise KeyRequired("The form was sent without a key.")
        self._check_keys([key.encode().decode("latin-1")], address)
        return self._sessions.issue()

    def sign_in_page(self, error: EloquioError) -> bytes:
        return sign_in_page(error)

    def _check_keys(self, keys: list[str], address: str) -> None:
        """`keys` are as headers hold them: one character a byte."""
        self._attempts.check(address)
        if not any(hmac.compare_digest(key.encode("latin-1"), self._key) for key in keys):
            self._attempts.note_failure(address)
            raise KeyRefused("This is not the key of this Eloquio.")


def _bearer(authorization: str | None) -> str | None:
    scheme, _, key = (authorization or "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def _cookie_value(header: str | None) -> str | None:
    try:
        morsel = SimpleCookie(header or "").get(COOKIE)
    except CookieError:
        return None
    return None if morsel is None else morsel.value
