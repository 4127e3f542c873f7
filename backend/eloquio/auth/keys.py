"""The key of this Eloquio: made once, kept in `home/api-key`, asked for beyond this machine."""

import contextlib
import secrets

from eloquio.addresses import is_loopback
from eloquio.private_files import close_to_others, create_private, private_folder
from eloquio.settings import Settings

PREFIX = "elq-"


def required_key(settings: Settings) -> str | None:
    """The key that every request must bring, made if there was none; None if nobody is asked."""
    if _given(settings) is None and is_loopback(settings.host):
        return None
    return own_key(settings)


def own_key(settings: Settings) -> str:
    """The key from the environment, else the one in the home folder, which is made if need be."""
    key = known_key(settings)
    if key is not None:
        return key
    private_folder(settings.home)
    # Two processes may make one at once: the first stays, and both read it.
    with contextlib.suppress(FileExistsError):
        create_private(settings.home / "api-key", PREFIX + secrets.token_urlsafe(32) + "\n")
    return _read(settings) or own_key(settings)


def known_key(settings: Settings) -> str | None:
    """The key if there is one already."""
    return _given(settings) or _read(settings)


def _given(settings: Settings) -> str | None:
    """The environment's key; an empty variable is as good as none."""
    return (settings.api_key.get_secret_value() or None) if settings.api_key else None


def _read(settings: Settings) -> str | None:
    path = settings.home / "api-key"
    try:
        key = path.read_text().strip()
    except FileNotFoundError:
        return None
    close_to_others(path)
    if not key:
        path.unlink()
        return None
    return key
