"""Sound of any kind becomes one channel of 16 000 samples a second."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torchaudio.functional import resample

from eloquio.worker import sound
from eloquio.worker.failures import RequestFailed
from fixtures.sound_files import as_file, silent_film, tone

RATES = (8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 96_000)
KINDS = (
    ("wav", "pcm_u8"),
    ("wav", "pcm_s16le"),
    ("wav", "pcm_s24le"),
    ("wav", "pcm_s32le"),
    ("wav", "pcm_f32le"),
    ("mp3", "mp3"),
    ("flac", "flac"),
    ("ogg", "libopus"),
    ("webm", "libopus"),
    ("matroska", "flac"),
    ("ipod", "aac"),
    ("mp4", "aac"),
    ("aiff", "pcm_s16be"),
)

WAV = as_file(tone(1, 16_000), 16_000)


def hertz(samples) -> float:
    """The loudest frequency."""
    strength = np.abs(np.fft.rfft(samples))
    return float(strength.argmax()) * sound.RATE / len(samples)


@pytest.mark.parametrize(("container", "codec"), KINDS)
def test_a_second_is_a_second_in_every_container(container: str, codec: str) -> None:
    heard = sound.decoded(as_file(tone(1, 48_000), 48_000, container, codec, channels=2))
    assert heard.dtype == np.float32
    assert len(heard) == pytest.approx(sound.RATE, rel=0.01)
    assert hertz(heard) == pytest.approx(440, abs=2)
    assert np.abs(heard).max() == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize("rate", RATES)
def test_a_second_is_the_same_at_every_rate_and_with_any_channels(rate: int, channels: int) -> None:
    heard = sound.decoded(as_file(tone(1, rate), rate, channels=channels))
    assert len(heard) == sound.RATE
    assert np.abs(heard - tone(1, sound.RATE))[200:-200].max() < 0.01


@pytest.mark.parametrize("rate", [44_100, 48_000, 8_000])
def test_no_border_is_heard_between_the_blocks_of_a_long_sound(rate: int) -> None:
    samples = np.random.default_rng(0).standard_normal(35 * rate).astype(np.float32) * 0.1
    heard = sound.decoded(as_file(samples, rate, codec="pcm_f32le"))
    at_once = resample(torch.from_numpy(samples), rate, sound.RATE).numpy()
    np.testing.assert_allclose(heard, at_once, atol=1e-6)


def test_a_rate_that_fits_no_filter_is_resampled_nevertheless() -> None:
    heard = sound.decoded(as_file(tone(2, 44_101), 44_101))
    assert len(heard) == pytest.approx(2 * sound.RATE, abs=20)
    assert hertz(heard) == pytest.approx(440, abs=2)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "has no bytes"),
        (b"Dear model, please", "a text"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (b'{"sound": 1}', "JSON"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "a PNG picture"),
        (bytes(1000), "a kind that isn't known"),
        (WAV[:20], "a RIFF file that is damaged or cut off"),
        (as_file(tone(1, 16_000), 16_000, "flac", "flac")[:10], "a FLAC file"),
        (WAV[: WAV.index(b"data") + 4] + bytes(4), "no samples"),
        (silent_film(), "no sound: it has video (mpeg4)"),
        # What names other files is opened as nothing.
        (b"#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n", "a text"),
        (b"ffconcat version 1.0\nfile '/etc/hostname'\n", "a text"),
    ],
)
def test_what_is_no_sound_is_refused_in_words_that_say_what_it_is(data: bytes, words: str) -> None:
    with pytest.raises(RequestFailed) as refused:
        sound.decoded(data, param="file")
    assert words in refused.value.message
    assert (refused.value.status, refused.value.param) == (400, "file")


def test_a_file_that_ends_early_is_heard_as_far_as_it_goes() -> None:
    whole = as_file(tone(4, 16_000), 16_000, "mp3", "mp3")
    heard = sound.decoded(whole[: len(whole) // 2])
    assert len(heard) == pytest.approx(2 * sound.RATE, rel=0.1)


def test_a_sound_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound, "MOST_HOURS", 1 / 3600)
    with pytest.raises(RequestFailed, match="longer than"):
        sound.decoded(as_file(tone(2, 16_000), 16_000))


def test_decoding_ends_once_nobody_waits_for_it() -> None:
    is_left = threading.Event()
    is_left.set()
    with pytest.raises(RequestFailed, match="nobody waits"):
        sound.decoded(as_file(tone(1, 16_000), 16_000), is_left=is_left)


@pytest.mark.anyio
async def test_decoding_leaves_the_loop_free() -> None:
    data = as_file(tone(60, 48_000), 48_000, "flac", "flac")
    decoding = asyncio.create_task(sound.heard(data))
    turns = 0
    while not decoding.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 100
    assert len(await decoding) == 60 * sound.RATE


_GROWTH = """
import resource, sys
from eloquio.worker import sound
sound.decoded(open(sys.argv[1], "rb").read()[:1_000_000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
heard = sound.decoded(open(sys.argv[1], "rb").read())
print(len(heard), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no resource module")
def test_a_long_sound_is_never_held_as_it_was_recorded(tmp_path: Path) -> None:
    """As numbers, ten minutes in two channels at 48 kHz would be 230 MB beside what they become."""
    seconds = 600
    file = tmp_path / "long.wav"
    file.write_bytes(_long_wav(as_file(tone(1, 48_000), 48_000, channels=2), seconds))
    told = subprocess.run(
        [sys.executable, "-c", _GROWTH, file],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=True,
        text=True,
    )
    length, grown_kib = map(int, told.stdout.split())
    assert length == seconds * sound.RATE
    as_decoded_bytes = 4 * length
    assert grown_kib * 1024 < file.stat().st_size + 2.5 * as_decoded_bytes


def _long_wav(second: bytes, seconds: int) -> bytes:
    """The same second again and again, under a header that says so."""
    start = second.index(b"data") + 8
    data = second[start:] * seconds
    size = len(data).to_bytes(4, "little")
    riff = (start - 8 + len(data)).to_bytes(4, "little")
    return second[:4] + riff + second[8 : start - 4] + size + data
