"""Sound from the bytes of any file that PyAV reads: one channel of samples, at a model's rate."""

import asyncio
import math
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import av
import numpy as np
import torch
from av.audio.resampler import AudioResampler
from numpy.typing import NDArray
from torchaudio.functional import resample

from eloquio.worker.failures import RequestFailed

Samples = NDArray[np.float32]
"""Of one channel, between -1 and 1."""

RATE = 16_000
MOST_HOURS = 4

# What is neither played from a file's own bytes alone nor needed: playlists, which name others.
_FORMATS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,eac3,flac,flv,gsm,matroska,webm,mov,mp4,m4a,3gp,3g2,"
    "mj2,mp3,mpeg,mpegts,ogg,oga,opus,tta,voc,w64,wav,wv"
)
_OPTIONS = {"format_whitelist": _FORMATS, "protocol_whitelist": "none"}
_BLOCK_SECONDS = 10
# A resampler's filter has so many numbers at most; some rates, primes say, would need billions.
_MOST_FILTER = 8_000_000
# Zero crossings of the filter that torchaudio has on each side.
_FILTER_WIDTH = 6
_MOST_DAMAGED = 0.1
_BEGINS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"MThd", "MIDI notes"),
    (b"RIFF", "a RIFF file that is damaged or cut off"),
    (b"fLaC", "a FLAC file that is damaged or cut off"),
    (b"OggS", "an Ogg file that is damaged or cut off"),
    (b"\x1aE\xdf\xa3", "a Matroska or WebM file that is damaged or cut off"),
    (b"ID3", "an MP3 file that is damaged or cut off"),
)


async def heard(data: bytes, *, rate: int = RATE, param: str | None = None) -> Samples:
    """`decoded` in a thread, which ends soon once nobody waits for it."""
    is_left = threading.Event()
    try:
        return await asyncio.to_thread(decoded, data, rate=rate, param=param, is_left=is_left)
    finally:
        is_left.set()


def decoded(
    data: bytes,
    *,
    rate: int = RATE,
    param: str | None = None,
    is_left: threading.Event | None = None,
) -> Samples:
    """The file's first sound, its channels mixed to one.

    Beside the samples it answers, a few seconds are held as they were recorded. Raises a
    RequestFailed, about `param`, for what is no sound or is longer than MOST_HOURS.
    """
    if not data:
        raise RequestFailed("the sound is empty: it has no bytes", param=param)
    pieces: deque[Samples] = deque()
    length = 0
    with _opened(data, param) as container:
        for piece in _resampled(_frames(container, param, is_left), rate):
            pieces.append(piece)
            length += len(piece)
            if length > MOST_HOURS * 3600 * rate:
                raise RequestFailed(
                    f"the sound is longer than {MOST_HOURS} hours, which is the most that is taken",
                    param=param,
                )
        told = _told_length(container, rate)
    if not length:
        raise RequestFailed("the file holds no samples of sound", param=param)
    return _joined(pieces, length)[:told]


@contextmanager
def _opened(data: bytes, param: str | None) -> Iterator[Any]:
    try:
        container = av.open(BytesIO(data), metadata_errors="ignore", options=dict(_OPTIONS))
    except (av.FFmpegError, ValueError) as error:
        raise RequestFailed(
            f"the file is no sound that can be read: it is {_what(data)}", param=param
        ) from error
    with container:
        if not container.streams.audio:
            there = ", ".join(dict.fromkeys(_named(stream) for stream in container.streams))
            raise RequestFailed(
                f"the file holds no sound: it has {there or 'nothing'} in it", param=param
            )
        yield container


def _told_length(container: Any, rate: int) -> int | None:
    """How many samples an MP4 says it has: its decoder fills the last of AAC's frames with silence.

    None where none is said; what others say may be a guess.
    """
    stream = container.streams.audio[0]
    if "mp4" not in container.format.name or stream.duration is None:
        return None
    return round(stream.duration * stream.time_base * rate) or None


def _frames(container: Any, param: str | None, is_left: threading.Event | None) -> Iterator[Any]:
    """What is decoded, one after the other. What is damaged is passed over, where it is little."""
    stream = container.streams.audio[0]
    packets = damaged = 0
    try:
        for packet in container.demux(stream):
            if is_left is not None and is_left.is_set():
                raise RequestFailed("nobody waits for the sound any more", param=param)
            packets += 1
            try:
                yield from packet.decode()
            except (av.InvalidDataError, av.EOFError):
                damaged += 1
    except av.FFmpegError as error:
        raise RequestFailed(f"the sound is damaged: {error.strerror}", param=param) from error
    if damaged > max(1, packets * _MOST_DAMAGED):
        raise RequestFailed(
            f"the sound is damaged: {damaged} of its {packets} pieces can't be decoded",
            param=param,
        )


def _resampled(frames: Iterator[Any], rate: int) -> Iterator[Samples]:
    """Blocks of samples at `rate`; a file may change its own rate on the way."""
    change: _RateChange | None = None
    for frame in frames:
        if frame.sample_rate < 1 or not frame.samples:
            continue
        if change is None or change.old != frame.sample_rate:
            if change is not None:
                yield from change.rest()
            change = _RateChange(frame.sample_rate, rate)
        yield from change.feed(frame)
    if change is not None:
        yield from change.rest()


class _RateChange:
    """Resamples block by block, with so much around each that no border is heard."""

    def __init__(self, old: int, new: int) -> None:
        self.old = old
        # Where torchaudio's filter would be too large, libav's own resampler does it.
        step = math.gcd(old, new)
        self._is_plain = old * new // step**2 > _MOST_FILTER
        self._floats = AudioResampler(format="fltp", rate=new if self._is_plain else old)
        self._from, self._to = (1, 1) if self._is_plain else (old // step, new // step)
        # All in steps: of `_from` samples that come, and the `_to` that they become.
        self._block = max(1, _BLOCK_SECONDS * old // self._from)
        reach = _FILTER_WIDTH * max(1.0, self._from / self._to) / 0.9 + 1
        self._around = math.ceil(reach / self._from)
        self._waiting: list[Samples] = []
        self._waiting_length = 0
        self._has_before = False

    def feed(self, frame: Any) -> Iterator[Samples]:
        for converted in self._floats.resample(frame):
            self._add(converted)
        wanted = (self._block + self._around * (2 if self._has_before else 1)) * self._from
        while self._waiting_length >= wanted:
            yield self._step(wanted, is_last=False)
            wanted = (self._block + 2 * self._around) * self._from

    def rest(self) -> Iterator[Samples]:
        for converted in self._floats.resample(None):
            self._add(converted)
        if self._waiting_length > (self._around * self._from if self._has_before else 0):
            yield self._step(self._waiting_length, is_last=True)

    def _add(self, frame: Any) -> None:
        samples = frame.to_ndarray()
        mixed = samples[0] if len(samples) == 1 else samples.mean(axis=0, dtype=np.float32)
        self._waiting.append(np.nan_to_num(mixed, copy=True, nan=0.0, posinf=1.0, neginf=-1.0))
        self._waiting_length += len(mixed)

    def _step(self, wanted: int, *, is_last: bool) -> Samples:
        """The next block; what is around it stays for its neighbours."""
        waiting = np.concatenate(self._waiting)
        before = self._around if self._has_before else 0
        made = self._made(waiting[:wanted])[before * self._to :]
        if is_last:
            kept = waiting[:0]
        else:
            made = made[: -self._around * self._to]
            kept = waiting[wanted - 2 * self._around * self._from :]
        self._waiting, self._waiting_length, self._has_before = [kept], len(kept), True
        return np.ascontiguousarray(made)

    def _made(self, samples: Samples) -> Samples:
        if self._from == self._to:
            return samples
        made = resample(
            torch.from_numpy(samples), self._from, self._to, lowpass_filter_width=_FILTER_WIDTH
        )
        return made.numpy()


def _joined(pieces: deque[Samples], length: int) -> Samples:
    """Each piece is given up as it is copied, so that hours of sound aren't held twice."""
    whole = np.empty(length, np.float32)
    at = 0
    while pieces:
        piece = pieces.popleft()
        whole[at : at + len(piece)] = piece
        at += len(piece)
    return whole


def _what(data: bytes) -> str:
    """In words, by how it begins."""
    for begin, what in _BEGINS:
        if data.startswith(begin):
            return what
    head = data[:256].lstrip().lower()
    if head.startswith((b"<!doctype", b"<html")):
        return "a web page"
    if head.startswith((b"{", b"[")):
        return "JSON"
    if all(byte >= 32 or byte in b"\t\r\n" for byte in head):
        return "a text"
    return "of a kind that isn't known here"


def _named(stream: Any) -> str:
    context = stream.codec_context
    codec = f" ({context.name})" if context is not None else ""
    return f"{stream.type}{codec}"
