"""Makes the input of the benchmarks: class folders of distinct JPEG photographs.

    python -m benchmarks.photographs 4000

They are the same each time. A pool of 200 images with the spectrum of natural scenes is encoded
once, about 50 KB each at 500x375. Every file is one of the pool with a comment segment that has the
file's number, so that all bytes differ and all are sound JPEGs. Decoding costs about what it does
for real photographs of that size; `--photographs DIR` takes your own as the pool.
"""

import argparse
import hashlib
import io
import os
import shutil
import struct
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

RECIPE = 1  # count up when `photograph` changes: pools are cached under this number
CLASSES = 20
POOL = 200
DEFAULT_WORK = Path(tempfile.gettempdir()) / "recordmill-benchmarks"


def photograph(number: int, width: int = 500, height: int = 375) -> bytes:
    """Encodes a baseline JPEG of flat shapes under 1/f noise.

    The same number gives the same image.
    """
    random = np.random.default_rng((RECIPE, number))
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width))
    frequency[0, 0] = 1 / max(width, height)

    def noise(exponent: float) -> NDArray[np.float64]:
        spectrum = np.fft.rfft2(random.standard_normal((height, width))) / frequency**exponent
        field = np.fft.irfft2(spectrum, s=(height, width))
        return (field - field.mean()) / field.std()

    image = Image.new("RGB", (width, height), _color(random))
    draw = ImageDraw.Draw(image)
    for _ in range(12):
        x, y = random.uniform(0, width), random.uniform(0, height)
        across, down = random.uniform(0.04, 0.3, 2) * width
        shape = draw.ellipse if random.random() < 0.5 else draw.rectangle
        shape((x - across, y - down, x + across, y + down), fill=_color(random))

    # Brightness carries the detail, color changes slowly: as in photographs, and what JPEG's
    # chroma halving expects.
    brightness = 40 * noise(random.uniform(1.2, 1.55))
    color = 12 * np.stack([noise(1.5) for _ in range(3)], axis=-1)
    pixels = np.asarray(image, np.float64) + brightness[:, :, None] + color
    encoded = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(encoded, "JPEG", quality=85)
    return encoded.getvalue()


def numbered(jpeg: bytes, number: int) -> bytes:
    """Returns the same image as different bytes.

    Its number is in a comment segment after the start marker.
    """
    if jpeg[:2] != b"\xff\xd8":
        raise ValueError("not a JPEG: it does not start with ff d8")
    comment = f"photograph {number}".encode()
    return jpeg[:2] + b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment + jpeg[2:]


def bare(jpeg: bytes, number: int) -> bytes:
    """Returns the same image as different bytes, without any metadata.

    Its number is the density in the JFIF segment.
    """
    if jpeg[2:11] != b"\xff\xe0\0\x10JFIF\0":
        raise ValueError("not a JPEG that begins with a JFIF segment")
    return jpeg[:14] + struct.pack(">HH", 1 + (number >> 15), 1 + (number & 0x7FFF)) + jpeg[18:]


def with_exif(jpeg: bytes, number: int) -> bytes:
    """Returns the same image with 10 KB of Exif, as of a camera.

    It has the image's number, a position and a maker's note.
    """
    exif = Image.Exif()
    exif[0x010E] = f"photograph {number}"
    exif.get_ifd(0x8825).update({1: "N", 2: (48.0, 8.0, 0.0), 3: "E", 4: (11.0, 34.0, 0.0)})
    exif.get_ifd(0x8769)[0x927C] = bytes(10_000)
    payload = exif.tobytes()
    after_jfif = 4 + struct.unpack_from(">H", bare(jpeg, number), 4)[0]
    return (
        jpeg[:after_jfif]
        + b"\xff\xe1"
        + struct.pack(">H", len(payload) + 2)
        + payload
        + jpeg[after_jfif:]
    )


def make(
    count: int,
    work: Path,
    own: Path | None = None,
    size: tuple[int, int] = (500, 375),
    classes: int = CLASSES,
    mark: Callable[[bytes, int], bytes] = numbered,
    distinct: int | None = None,
) -> Path:
    """Returns a folder of `count` photographs in class folders.

    It is made below `work` unless it is there already.

    Args:
        count: how many files.
        work: the folder of the cache.
        own: a folder whose first 200 JPEGs, sorted by path, are the pool instead of the synthetic
            ones.
        size: width and height of the synthetic ones.
        classes: how many class folders.
        mark: what makes the files differ: `numbered`, `bare` or `with_exif`.
        distinct: how many synthetic images are encoded; None for `POOL`.
    """
    pool = _own(own) if own else _synthetic(work, size, distinct or POOL)
    digest = hashlib.sha256(b"".join(pool)).hexdigest()[:8]
    folder = work / (
        f"photographs-{count}-{digest}" + (f"-{classes}-classes" if classes != CLASSES else "")
    )
    folder = folder if mark is numbered else folder.with_name(f"{folder.name}-{mark.__name__}")
    if not folder.exists():
        unfinished = _fresh(folder.with_name(folder.name + ".unfinished"))
        for label in range(classes):
            (unfinished / f"class_{label:02}").mkdir()
        for number in range(count):
            path = unfinished / f"class_{number % classes:02}" / f"photograph_{number:06}.jpg"
            path.write_bytes(mark(pool[number % len(pool)], number))
        unfinished.rename(folder)
    return folder


def warm(folder: Path) -> int:
    """Reads every file below the folder, and returns their size in bytes.

    Each contender then finds them in the page cache.
    """
    return sum(len(path.read_bytes()) for path in folder.rglob("*.jpg"))


def _color(random: np.random.Generator) -> tuple[int, int, int]:
    red, green, blue = random.integers(30, 225, 3).tolist()
    return red, green, blue


def _synthetic(work: Path, size: tuple[int, int], distinct: int) -> Sequence[bytes]:
    folder = work / f"pool-{RECIPE}-{size[0]}x{size[1]}-{distinct}"
    if not folder.exists():
        unfinished = _fresh(folder.with_name(folder.name + ".unfinished"))
        for number in range(distinct):
            (unfinished / f"{number:03}.jpg").write_bytes(photograph(number, *size))
        unfinished.rename(folder)
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def _own(folder: Path) -> Sequence[bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in {".jpg", ".jpeg"})[
        :POOL
    ]
    if not paths:
        raise ValueError(f"no .jpg or .jpeg file below {folder}")
    return [path.read_bytes() for path in paths]


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def main() -> None:
    """Makes the photographs and prints their folder."""
    parser = argparse.ArgumentParser(description="Make class folders of distinct JPEG photographs.")
    parser.add_argument("count", type=int, help="how many photographs")
    parser.add_argument(
        "--work", type=Path, default=DEFAULT_WORK, help="folder for the cache (%(default)s)"
    )
    parser.add_argument(
        "--photographs", type=Path, metavar="DIR", help="your own JPEGs instead of synthetic ones"
    )
    arguments = parser.parse_args()
    print(os.fspath(make(arguments.count, arguments.work, arguments.photographs)))


if __name__ == "__main__":
    main()
