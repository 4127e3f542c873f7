"""Any picture becomes a PNG or JPEG that shows the same, as a decoder without frills sees it."""

import struct
import zlib
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageStat

from eloquio.errors import ImageFormatUnsupported, ImageTooLarge, InvalidImage
from eloquio.media.conversion import LARGEST_PIXELS, readable_by_engine
from fixtures.picture_files import (
    BLUE,
    FILES,
    HEIGHT,
    RED,
    WHITE,
    WIDTH,
    saved,
    scene,
    see_through,
)

# What Pillow says of odd files, which the server leaves unsaid.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

LEFT, RIGHT = (WIDTH // 4, HEIGHT // 2), (3 * WIDTH // 4, HEIGHT // 2)


def seen(data: bytes) -> Image.Image:
    """The pixels as they are stored: nothing turned, nothing laid on anything."""
    picture = readable_by_engine(data)
    image = Image.open(BytesIO(picture.data), formats=["PNG", "JPEG"])
    assert picture.media_type == {"PNG": "image/png"}.get(image.format, "image/jpeg")
    assert image.mode in ("L", "RGB")
    assert "transparency" not in image.info
    return image.convert("RGB")


def is_about(colour, wanted, tolerance=12) -> bool:
    return all(abs(one - other) <= tolerance for one, other in zip(colour, wanted, strict=True))


@pytest.mark.parametrize("kind", FILES)
def test_every_format_shows_the_same(kind):
    image = seen(FILES[kind]())
    assert image.size == (WIDTH, HEIGHT)
    assert is_about(image.getpixel(LEFT), RED)
    assert is_about(image.getpixel(RIGHT), BLUE)


@pytest.mark.parametrize("kind", ["png", "jpeg", "progressive jpeg"])
def test_what_needs_nothing_keeps_its_bytes(kind):
    data = FILES[kind]()
    assert readable_by_engine(data).data == data


LOSSY = ("lossy webp", "animated webp", "avif", "heic", "cmyk jpeg")


@pytest.mark.parametrize("kind", sorted({*FILES} - {"png", "jpeg", "progressive jpeg"}))
def test_what_had_lost_something_becomes_a_jpeg_and_all_else_a_png(kind):
    wanted = "image/jpeg" if kind in LOSSY else "image/png"
    assert readable_by_engine(FILES[kind]()).media_type == wanted


def photo() -> Image.Image:
    """Colours that change a little from pixel to pixel, and much from side to side."""
    side = 256
    grey = Image.linear_gradient("L")
    noise = Image.effect_noise((side, side), 12)
    bands = (grey, grey.rotate(90), Image.radial_gradient("L"))
    return Image.merge("RGB", [ImageChops.add(band, noise, 2) for band in bands])


@pytest.mark.parametrize("kind", ["WEBP", "AVIF", "HEIF"])
def test_a_photo_keeps_its_pixels_and_is_smaller_than_its_png(kind):
    data = saved(photo(), kind, quality=80)
    given = Image.open(BytesIO(data)).convert("RGB")
    picture = readable_by_engine(data)
    assert len(picture.data) < len(saved(given, "PNG")) / 2
    seen_by_engine = Image.open(BytesIO(picture.data))
    assert seen_by_engine.size == given.size
    # Of 255, on average and in a grainy photo: no eye sees it.
    assert max(ImageStat.Stat(ImageChops.difference(given, seen_by_engine)).mean) < 3


def test_each_pixel_of_a_jpeg_keeps_its_own_colour():
    image = Image.new("RGB", (64, 64), RED)
    for column in range(0, 64, 2):
        image.paste(BLUE, (column, 0, column + 1, 64))
    exif = Image.Exif()
    exif[0x0112] = 3
    data = saved(image, "JPEG", quality=100, subsampling="4:4:4", exif=exif.tobytes())
    turned = seen(data)
    assert is_about(turned.getpixel((31, 32)), BLUE)
    assert is_about(turned.getpixel((32, 32)), RED)


def test_a_jpeg_that_was_turned_is_not_turned_again_and_tells_nothing_of_its_place():
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "at home"
    data = saved(scene().transpose(Image.Transpose.ROTATE_90), "JPEG", exif=exif.tobytes())
    picture = readable_by_engine(data)
    assert picture.media_type == "image/jpeg"
    assert b"at home" not in picture.data
    assert not Image.open(BytesIO(picture.data)).getexif()


def test_a_tiff_is_what_is_in_it():
    packed = readable_by_engine(saved(scene(), "TIFF", compression="jpeg", quality=95))
    assert packed.media_type == "image/jpeg"


def test_what_no_jpeg_can_hold_stays_a_png():
    high = Image.new("RGB", (16, 65_504), RED)
    picture = readable_by_engine(saved(high, "TIFF", compression="jpeg"))
    assert picture.media_type == "image/png"
    assert Image.open(BytesIO(picture.data)).size == high.size


def test_room_is_waited_for_before_anything_is_decoded(monkeypatch):
    class NoRoom(Exception):
        pass

    def room_of(pixels):
        raise NoRoom(pixels)

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda _: pytest.fail("it was decoded"))
    with pytest.raises(NoRoom, match=str(WIDTH * HEIGHT)):
        readable_by_engine(FILES["png"](), room_of)


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("RGBA", "PNG"),
        ("LA", "PNG"),
        ("RGBA", "WEBP"),
        ("RGBA", "AVIF"),
        ("RGBA", "HEIF"),
        ("RGBA", "TIFF"),
        ("LA", "TIFF"),
        ("RGBA", "GIF"),
    ],
)
def test_what_is_transparent_is_laid_on_white(mode, kind):
    image = seen(saved(see_through(mode), kind))
    assert is_about(image.getpixel(RIGHT), WHITE)
    assert is_about(image.getpixel(LEFT), RED if mode == "RGBA" else (76, 76, 76))


def test_half_transparent_is_half_white():
    half = Image.new("RGBA", (8, 8), (0, 0, 0, 128))
    assert is_about(seen(saved(half, "PNG")).getpixel((4, 4)), (127, 127, 127), 1)


def test_a_transparent_colour_of_a_palette_is_laid_on_white():
    image = Image.new("P", (WIDTH, HEIGHT), 0)
    image.putpalette([*RED, *BLUE])
    image.paste(1, (WIDTH // 2, 0, WIDTH, HEIGHT))
    for transparency in (1, b"\xff\x00"):
        shown = seen(saved(image, "PNG", transparency=transparency))
        assert shown.getpixel(LEFT) == RED
        assert shown.getpixel(RIGHT) == WHITE


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_a_transparent_colour_without_a_palette_is_laid_on_white(mode):
    black = Image.new(mode, (8, 8), 0)
    transparency = 0 if mode == "L" else (0, 0, 0)
    assert seen(saved(black, "PNG", transparency=transparency)).getpixel((4, 4)) == WHITE


def test_one_bit_becomes_black_and_white():
    image = Image.new("1", (WIDTH, HEIGHT), 0)
    image.paste(1, (WIDTH // 2, 0, WIDTH, HEIGHT))
    for kind in ("PNG", "TIFF", "BMP"):
        shown = seen(saved(image, kind))
        assert (shown.getpixel(LEFT), shown.getpixel(RIGHT)) == ((0, 0, 0), WHITE)


def png(
    depth: int, colour_type: int, pixel: bytes, *chunks: tuple[bytes, bytes], side: int = 1
) -> bytes:
    """A PNG of one pixel, of a kind that Pillow doesn't write; `side` is what it says it has."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = struct.pack(">IIBBBBB", side, side, depth, colour_type, 0, 0, 0)
    middle = [*chunks, (b"IDAT", zlib.compress(b"\0" + pixel)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in [(b"IHDR", head), *middle])


@pytest.mark.parametrize(
    ("data", "colour"),
    [
        (png(16, 0, b"\x80\x00"), (128, 128, 128)),
        (png(16, 0, b"\x01\x00"), (1, 1, 1)),
        (png(16, 0, b"\x80\x01", (b"tRNS", b"\x80\x00")), (128, 128, 128)),
        (png(16, 0, b"\x80\x00", (b"tRNS", b"\x80\x00")), WHITE),
        (png(16, 2, b"\xff\xff\x80\x00\x00\x00"), (255, 128, 0)),
        (png(16, 4, b"\x00\x00\x00\x00"), WHITE),
        (png(16, 6, b"\xff\xff\x00\x00\x00\x00\xff\xff"), RED),
    ],
    ids=["grey", "dark", "grey beside a clear one", "clear grey", "rgb", "la", "rgba"],
)
def test_sixteen_bits_become_the_upper_eight(data, colour):
    assert seen(data).getpixel((0, 0)) == colour


def test_sixteen_bits_of_a_tiff_become_the_upper_eight():
    for mode in ("I;16", "I;16B"):
        image = Image.new(mode, (8, 8), 0x8000)
        assert seen(saved(image, "TIFF")).getpixel((4, 4)) == (128, 128, 128)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF", "HEIF", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_is_turned_upright(kind, orientation):
    undone = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = scene().transpose(undone[orientation]) if orientation > 1 else scene()
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = seen(saved(stored, kind, exif=exif.tobytes()))
    assert image.size == (WIDTH, HEIGHT)
    assert is_about(image.getpixel(LEFT), RED)
    assert is_about(image.getpixel(RIGHT), BLUE)


def test_exif_that_cannot_be_read_turns_nothing():
    data = saved(scene(), "JPEG", exif=b"Exif\0\0II*\0\x08\0\0\0\xff\xff nonsense")
    assert seen(data).size == (WIDTH, HEIGHT)


def test_a_second_picture_behind_a_jpeg_changes_nothing():
    data = saved(scene(), "MPO", save_all=True, append_images=[scene()])
    assert readable_by_engine(data).data == data
    assert is_about(seen(data).getpixel(LEFT), RED)


@pytest.mark.parametrize("kind", FILES)
def test_a_picture_that_is_cut_off_is_invalid(kind):
    data = FILES[kind]()
    for length in (len(data) // 2, len(data) // 8 + 12):
        with pytest.raises(InvalidImage):
            readable_by_engine(data[:length])


@pytest.mark.parametrize(
    "data",
    [
        b"hello, this is no picture",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
        b"%PDF-1.7\n",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"P6 1 1 255\n\0\0\0",
        b"\0\0\0\x0cjP  \r\n\x87\n",
        b"\0",
    ],
)
def test_a_format_that_nobody_reads_is_unsupported(data):
    with pytest.raises(ImageFormatUnsupported) as refused:
        readable_by_engine(data)
    assert refused.value.status == 415


@pytest.mark.parametrize("mode", ["I", "F", "LAB"])
def test_values_that_are_no_colours_are_unsupported(mode):
    with pytest.raises(ImageFormatUnsupported):
        readable_by_engine(saved(Image.new(mode, (8, 8)), "TIFF"))


def header_only(kind: str, side: int) -> bytes:
    """A small file that says it is a large picture."""
    match kind:
        case "PNG":
            return png(8, 2, b"\0\0\0", side=side)
        case "GIF":
            small = saved(scene(), "GIF")
            return small[:6] + struct.pack("<HH", side, side) + small[10:]
        case "BMP":
            small = saved(scene(), "BMP")
            return small[:18] + struct.pack("<ii", side, side) + small[26:]
        case _:
            small = saved(scene(), "JPEG")
            at = small.index(b"\xff\xc0") + 5
            return small[:at] + struct.pack(">HH", side, side) + small[at + 4 :]


@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP", "JPEG"])
@pytest.mark.parametrize("side", [10_001, 14_000, 65_000])
def test_a_picture_with_too_many_pixels_is_refused_before_it_is_decoded(kind, side, monkeypatch):
    data = header_only(kind, side)
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda _: pytest.fail("it was decoded"))
    with pytest.raises(ImageTooLarge) as refused:
        readable_by_engine(data)
    assert refused.value.status == 413
    assert str(side * side) in refused.value.message
    assert str(LARGEST_PIXELS) in refused.value.message


def test_a_frame_that_is_larger_than_its_animation_is_refused():
    small = saved(scene(), "GIF")
    frame = small.index(b"\x2c") + 5
    data = small[:frame] + struct.pack("<HH", 60_000, 60_000) + small[frame + 4 :]
    with pytest.raises((ImageTooLarge, InvalidImage)):
        readable_by_engine(data)


@settings(max_examples=300, deadline=None)
@given(kind=st.sampled_from(sorted(FILES)), data=st.data())
def test_whatever_is_damaged_is_read_or_refused_by_name(kind, data):
    whole = bytearray(_FILES[kind])
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        picture = readable_by_engine(bytes(whole))
    except (InvalidImage, ImageTooLarge, ImageFormatUnsupported):
        return
    assert picture.media_type in ("image/png", "image/jpeg")


_FILES = {kind: write() for kind, write in FILES.items()}
