"""One picture of a request, made what an engine reads."""

import asyncio
import base64
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import unquote, unquote_to_bytes

from eloquio.errors import EloquioError, ImageTooLarge, InvalidImage, RemoteMediaRefused
from eloquio.media.fetcher import Fetcher

LARGEST_PICTURE_BYTES = 20_000_000

# Few: while it is converted, the largest picture takes a core and 1 GB.
_THREADS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="picture")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:")
_DATA_SCHEME = "data:"


async def for_engine(source: str, param: str, fetch: Fetcher | None) -> str:
    """A data URL with the PNG or JPEG of `source`: a data URL, bare base64 or an http(s) URL.

    `param` is where it stands in the request, for the errors: InvalidImage, ImageTooLarge,
    ImageFormatUnsupported, RemoteMediaFailed, and RemoteMediaRefused, which is also what every
    address is answered with where there is no `fetch`.
    """
    with _naming(param):
        found: str | bytes = source
        if _SCHEME.match(source) and not _is_data_url(source):
            found = await _fetched(source, fetch)
        return await asyncio.get_running_loop().run_in_executor(_THREADS, _data_url, found)


async def _fetched(url: str, fetch: Fetcher | None) -> bytes:
    if fetch is None:
        raise RemoteMediaRefused(
            "A picture's address isn't fetched from here.",
            next_step="Send the picture itself, as a data URL; or let Eloquio fetch from public "
            "addresses: start it with ELOQUIO_ALLOW_REMOTE_MEDIA=true.",
        )
    return await fetch.fetch(url, LARGEST_PICTURE_BYTES)


def _data_url(found: str | bytes) -> str:
    # Not before the first picture: a server that never sees one does without the decoders.
    from eloquio.media.conversion import readable_by_engine

    data = _embedded(found) if isinstance(found, str) else found
    if not data:
        raise InvalidImage("The picture is empty.")
    if len(data) > LARGEST_PICTURE_BYTES:
        raise ImageTooLarge(
            f"The picture has {len(data)} bytes; at most {LARGEST_PICTURE_BYTES} are taken."
        )
    picture = readable_by_engine(data)
    return f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode()}"


def _is_data_url(source: str) -> bool:
    return source[: len(_DATA_SCHEME)].lower() == _DATA_SCHEME


def _embedded(source: str) -> bytes:
    """The bytes of a data URL, or of bare base64."""
    if not _is_data_url(source):
        return _from_base64(source)
    head, comma, content = source.partition(",")
    if not comma:
        raise InvalidImage("The picture's data URL ends before its data.")
    if not head.lower().endswith(";base64"):
        return unquote_to_bytes(content)
    return _from_base64(unquote(content) if "%" in content else content)


def _from_base64(text: str) -> bytes:
    # Broken into lines, or without its padding, it still has one meaning only.
    letters = "".join(text.split()).rstrip("=")
    try:
        return base64.b64decode(letters + "=" * (-len(letters) % 4), validate=True)
    except ValueError:
        raise InvalidImage("The picture isn't valid base64.") from None


@contextmanager
def _naming(param: str) -> Iterator[None]:
    """Each error in it names the part of the request that it is about."""
    try:
        yield
    except EloquioError as error:
        error.param = param
        raise
