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
from eloquio.media.room import Room

LARGEST_PICTURE_BYTES = 20_000_000
LARGEST_TOGETHER_BYTES = 72_000_000
"""Of one request's pictures, as an engine is given them: 96 MB in base64, and llama-server takes
104.8 MB with what is said beside them."""

_THREADS = 2
# While it is converted, each pixel takes 12 bytes: together 600 MB, or 1.2 GB for the largest.
_PIXELS_AT_ONCE = 50_000_000
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:")
_DATA_SCHEME = "data:"


class Together:
    """How many bytes the pictures of one request have so far."""

    def __init__(self) -> None:
        self._size_bytes = 0

    def add(self, size_bytes: int) -> None:
        """Raises ImageTooLarge, with which the rest of them need not be made."""
        self._size_bytes += size_bytes
        if self._size_bytes > LARGEST_TOGETHER_BYTES:
            raise ImageTooLarge(
                f"The request's pictures have {self._size_bytes} bytes or more together, as an "
                f"engine is given them; at most {LARGEST_TOGETHER_BYTES} are taken.",
                next_step="Send fewer of them, or smaller ones.",
            )


class PictureMaker:
    """Makes the pictures of all requests, few at a time."""

    def __init__(self, fetch: Fetcher | None = None) -> None:
        """`fetch` brings a picture that is named by its address; None where none may be."""
        self._fetch = fetch
        self._threads = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="picture")
        self._room = Room(_PIXELS_AT_ONCE)

    async def for_engine(self, source: str, param: str, together: Together) -> str:
        """A data URL with the PNG or JPEG of `source`: a data URL, bare base64 or an http(s) URL.

        `param` is where it stands in the request, for the errors: InvalidImage, ImageTooLarge,
        ImageFormatUnsupported, RemoteMediaFailed, and RemoteMediaRefused.
        """
        with _naming(param):
            fetched: bytes | None = None
            if _SCHEME.match(source) and not _is_data_url(source):
                fetched = await self._fetched(source)
                together.add(len(fetched))
            loop = asyncio.get_running_loop()
            url, size_bytes = await loop.run_in_executor(
                self._threads, self._data_url, source, fetched
            )
            together.add(size_bytes - len(fetched or b""))
            return url

    async def _fetched(self, url: str) -> bytes:
        if self._fetch is None:
            raise RemoteMediaRefused(
                "A picture's address isn't fetched from here.",
                next_step="Send the picture itself, as a data URL; or let Eloquio fetch from "
                "public addresses: start it with ELOQUIO_ALLOW_REMOTE_MEDIA=true.",
            )
        return await self._fetch.fetch(url, LARGEST_PICTURE_BYTES)

    def _data_url(self, source: str, fetched: bytes | None) -> tuple[str, int]:
        """The picture, and how many bytes it has."""
        # Not before the first picture: a server that never sees one does without the decoders.
        from eloquio.media.conversion import readable_by_engine

        data = _embedded(source) if fetched is None else fetched
        if not data:
            raise InvalidImage("The picture is empty.")
        if len(data) > LARGEST_PICTURE_BYTES:
            raise ImageTooLarge(
                f"The picture has {len(data)} bytes; at most {LARGEST_PICTURE_BYTES} are taken."
            )
        picture = readable_by_engine(data, self._room.of)
        head = f"data:{picture.media_type};base64,"
        if picture.data is data and _is_written_so(source, head, len(data)):
            return source, len(data)
        return head + base64.b64encode(picture.data).decode(), len(picture.data)


def _is_written_so(source: str, head: str, size_bytes: int) -> bool:
    """Whether `source`, which was read as base64, is just what would be written."""
    return source.startswith(head) and len(source) == len(head) + 4 * -(-size_bytes // 3)


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
