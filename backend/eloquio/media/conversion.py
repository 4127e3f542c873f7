"""The bytes of any picture as a PNG or JPEG that an engine's decoder reads.

An engine decodes with stb_image, which knows neither WebP, AVIF, HEIC nor TIFF, turns nothing
upright and lays nothing on a background. What it reads rightly keeps its bytes. Everything else is
written anew with as many pixels: as a JPEG of high quality where it had lost something by its
format before, since a photo as a PNG is several times as large, and as a PNG where it hadn't.
"""

import re
import struct
import warnings
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from io import BytesIO
from typing import Literal

# Each of the plugins registers itself with Pillow.
from PIL import (  # noqa: F401
    AvifImagePlugin,
    BmpImagePlugin,
    ExifTags,
    GifImagePlugin,
    Image,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)
from pillow_heif import register_heif_opener

from eloquio.errors import EloquioError, ImageFormatUnsupported, ImageTooLarge, InvalidImage

LARGEST_PIXELS = 100_000_000

# Pillow has plugins beside these that start programs (EPS) or read documents: none is asked.
_FORMATS = ("PNG", "JPEG", "WEBP", "AVIF", "HEIF", "GIF", "TIFF", "BMP")
_PREFIX_BYTES = 16
register_heif_opener(thumbnails=False, decode_threads=1)
# For what turns out only in decoding, such as a frame that is larger than its picture.
Image.MAX_IMAGE_PIXELS = LARGEST_PIXELS
warnings.simplefilter("error", Image.DecompressionBombWarning)
# About odd pictures, of which there are many: nothing that whoever runs a server could mend.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")

# What the plugins raise at bytes that don't go on as they begin.
_DAMAGES = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError),
    *(SyntaxError, TypeError, ValueError, struct.error, zlib.error),
)

_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_UPPER_BYTE = [value >> 8 for value in range(65536)]
_PNG_DEPTH_AT = 24
_PNG_END = b"IEND\xaeB`\x82"
_JPEG_QUALITY = 92
_LARGEST_JPEG_SIDE = 65_500
# Pillow's names for a format by which a photo has lost something; AVIF and HEIC that lost nothing
# are rare, and look the same from outside.
_LOSSY = ("JPEG", "MPO", "AVIF", "HEIF")
# The part of a WebP file that holds its first picture.
_WEBP_PICTURE = re.compile(rb"VP8[ L]")
# How a JPEG's frame begins that is coded arithmetically, which stb_image can't read.
_ARITHMETIC = re.compile(rb"\xff[\xc9-\xcb\xcd-\xcf]")


@dataclass(frozen=True)
class Picture:
    media_type: Literal["image/png", "image/jpeg"]
    data: bytes


def readable_by_engine(
    data: bytes, room_of: Callable[[int], AbstractContextManager[None]] = lambda _: nullcontext()
) -> Picture:
    """The picture upright and on white; of an animation, the first frame. Seconds, at worst.

    Before anything is decoded, room is waited for, of as many pixels as it has. Raises
    InvalidImage, ImageFormatUnsupported or ImageTooLarge.
    """
    try:
        with _opened(data) as image:
            pixels = image.width * image.height
            if pixels > LARGEST_PIXELS:
                raise _too_large(f"{pixels}")
            with room_of(pixels):
                return _readable(image, data)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large(f"more than {LARGEST_PIXELS}") from None
    except _DAMAGES:
        raise InvalidImage("The picture is damaged or cut off.") from None


def _readable(image: Image.Image, data: bytes) -> Picture:
    image.load()
    orientation = _orientation(image)
    if orientation is None and (media_type := _readable_as(image, data)):
        return Picture(media_type, data)
    is_lossy = _has_lost_something(image, data)
    upright = image if orientation is None else image.transpose(orientation)
    opaque = _opaque(upright)
    return Picture("image/jpeg", _jpeg(opaque)) if is_lossy else Picture("image/png", _png(opaque))


def _opened(data: bytes) -> Image.Image:
    """The picture with its header read, and nothing decoded yet."""
    is_known = False
    for name in _FORMATS:
        opens, accepts = Image.OPEN[name]
        if accepts is not None and accepts(data[:_PREFIX_BYTES]) is True:
            is_known = True
            try:
                return opens(BytesIO(data), "")
            except _DAMAGES:
                # AVIF and HEIC can begin alike.
                continue
    if is_known:
        raise InvalidImage("The picture is damaged or cut off within its header.")
    raise ImageFormatUnsupported("The picture is of no format that can be read here.")


def _orientation(image: Image.Image) -> Image.Transpose | None:
    """What turns it upright; None where it is, or where its EXIF can't be read."""
    try:
        return _UPRIGHT.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except _DAMAGES:
        return None


def _readable_as(image: Image.Image, data: bytes) -> Literal["image/png", "image/jpeg"] | None:
    """The type of a picture that an engine reads rightly as it is."""
    if image.mode not in ("L", "RGB") or image.has_transparency_data:
        return None
    match image.format:
        case "PNG" if data[_PNG_DEPTH_AT] == 8 and data.endswith(_PNG_END):
            return "image/png"
        # MPO is what a phone's JPEG is called when a second picture follows it.
        case "JPEG" | "MPO" if not _ARITHMETIC.search(data):
            return "image/jpeg"
        case _:
            return None


def _has_lost_something(image: Image.Image, data: bytes) -> bool:
    """Whether it is a photo as by its format: lossy, opaque, and of a size that a JPEG can have."""
    if image.has_transparency_data or max(image.size) > _LARGEST_JPEG_SIDE:
        return False
    if image.format == "WEBP":
        picture = _WEBP_PICTURE.search(data)
        return picture is not None and picture[0] == b"VP8 "
    return image.format in _LOSSY or image.info.get("compression") in ("jpeg", "tiff_jpeg")


def _opaque(image: Image.Image) -> Image.Image:
    """In 8 bits of grey or of red, green and blue, on white."""
    if image.mode.startswith("I;16"):
        return _opaque_of_16_bits(image)
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        white = Image.new("RGB", image.size, "white")
        white.paste(layer, mask=layer)
        return white
    match image.mode:
        case "1" | "L":
            return image.convert("L")
        case "P" | "RGB" | "RGBX" | "CMYK" | "YCbCr":
            return image.convert("RGB")
        case other:
            raise ImageFormatUnsupported(
                f"The picture's values are of the kind {other}, which no colour can be told from."
            )


def _opaque_of_16_bits(image: Image.Image) -> Image.Image:
    # Pillow's own conversion to 8 bits makes every value above 255 white.
    wide = image.convert("I")
    grey = wide.point(_UPPER_BYTE, "L")
    transparent = image.info.get("transparency")
    if transparent is not None:
        mask = wide.point([255 * (value == transparent) for value in range(65536)], "L")
        grey.paste(255, mask=mask)
    return grey


def _png(image: Image.Image) -> bytes:
    file = BytesIO()
    # Quick rather than small: it goes to a process on this machine. What the picture had beside
    # its pixels would be written along.
    image.save(file, "PNG", compress_level=1, icc_profile=None, transparency=None)
    return file.getvalue()


def _jpeg(image: Image.Image) -> bytes:
    file = BytesIO()
    # Each pixel with a colour of its own; without what the picture had beside its pixels.
    image.save(
        file,
        "JPEG",
        quality=_JPEG_QUALITY,
        subsampling="4:4:4",
        icc_profile=None,
        exif=b"",
        comment=b"",
    )
    return file.getvalue()


def _too_large(pixels: str) -> EloquioError:
    return ImageTooLarge(f"The picture has {pixels} pixels; at most {LARGEST_PIXELS} are taken.")
