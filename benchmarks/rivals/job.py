"""What the rivals share: the listing, the images and the last line.

Only their processes and writers differ.
"""

import argparse
import hashlib
import io
import json
import os
from pathlib import Path
from typing import NamedTuple

from PIL import Image

MODES = ("reencode", "decode", "copy", "shrink")
SHRUNK_SIDE = 256
"""The longest side of what `shrink` writes, in pixels."""

Features = dict[str, bytes | int]


class Item(NamedTuple):
    """An image file: its path, its name below the input folder, its class's number and name."""

    path: str
    name: str
    label: int
    text: str


def items(folder: str) -> list[Item]:
    """Lists `folder/<class>/<image>`, sorted; classes are numbered from 0 in that order."""
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    return [
        Item(f"{folder}/{text}/{name}", f"{text}/{name}", label, text)
        for label, text in enumerate(classes)
        for name in sorted(os.listdir(f"{folder}/{text}"))
    ]


def features(item: Item, mode: str) -> Features:
    """Reads an image and makes its record.

    Mode `reencode` decodes and encodes at quality 95, `decode` decodes to check and keeps the
    bytes, `copy` opens the header only. `shrink` makes a thumbnail, for which Pillow
    lets libjpeg decode at a smaller scale, and encodes it at quality 95.
    """
    encoded = Path(item.path).read_bytes()
    with Image.open(io.BytesIO(encoded)) as image:
        if mode == "shrink":
            image.thumbnail((SHRUNK_SIDE, SHRUNK_SIDE), Image.Resampling.LANCZOS)
        elif mode != "copy":
            image.load()
        width, height = image.size
        if mode in ("reencode", "shrink"):
            output = io.BytesIO()
            image.convert("RGB").save(output, "JPEG", quality=95)
            encoded = output.getvalue()
    return {
        "image/class/label": item.label,
        "image/class/text": item.text.encode(),
        "image/encoded": encoded,
        "image/filename": os.path.basename(item.name).encode(),
        "image/format": b"jpg",
        "image/height": height,
        "image/key/sha256": hashlib.sha256(encoded).hexdigest().encode(),
        "image/width": width,
    }


def arguments(description: str | None) -> argparse.Namespace:
    """Parses the command line of a rival."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--input", required=True, help="folder of class folders of JPEG files")
    parser.add_argument("--output", required=True, help="folder for the TFRecord files")
    parser.add_argument("--mode", choices=MODES, default="reencode")
    return parser.parse_args()


def report(records: int, size: int, seconds: float) -> None:
    """Prints the last line: records and bytes written, and seconds.

    The seconds are from the moment when all processes are ready to the end.
    """
    print(json.dumps({"records": records, "bytes": size, "seconds_working": round(seconds, 4)}))
