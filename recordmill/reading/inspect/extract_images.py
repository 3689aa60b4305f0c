"""Writes the images of records to files."""

import os
import re
from collections.abc import Iterable

from recordmill.imaging.sniff import sniff
from recordmill.reading.dataset import Dataset
from recordmill.reading.expectations import expect
from recordmill.reading.inspect.find_record import FoundRecord, read_records
from recordmill.schemas.errors import LoadError

_EXTENSIONS = {"JPEG": "jpg", "TIFF": "tif", "WEBP": "webp", "PNG": "png", "GIF": "gif", "BMP": "bmp", "PPM": "ppm"}
_EXTENSIONS |= {"AVIF": "avif", "HEIC": "heic", "JPEG2000": "jp2"}


def extract_images(
    dataset: Dataset, folder: str, chosen: Iterable[FoundRecord] | None = None, limit: int | None = None
) -> int:
    """Writes the encoded images of records, unchanged, to `folder/<split>/<number>-<name of the source>.<format>`.

    Args:
        dataset: the dataset.
        folder: a local folder; must not exist or be empty.
        chosen: the records; None for all.
        limit: the maximum number of images; None for all.

    Returns:
        The number of images written.

    Raises:
        LoadError: the folder is not empty, or no record has an image.
        OSError: a file cannot be read or written.
    """
    if os.path.isdir(folder) and os.listdir(folder):
        raise LoadError(f"{folder} holds something already: name a new folder for the images")
    count, expected = 0, expect(dataset)
    for found in read_records(dataset) if chosen is None else chosen:
        if count == limit:
            break
        if image := found.image(expected):
            path = os.path.join(folder, _safe(found.shard.split), _file_name(found, image))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "xb") as file:
                file.write(image)
            count += 1
    if not count:
        raise LoadError(f"no record of {dataset.folder} that was read has an encoded image")
    return count


def _file_name(found: FoundRecord, image: bytes) -> str:
    source = os.path.splitext(found.row.key if found.row else "")[0]
    extension = _EXTENSIONS.get(sniff(image) or "", "bin")
    name = f"{found.number:06d}-{_safe(source)}" if source else f"{found.number:06d}"
    return f"{name[:120]}.{extension}"


def _safe(text: str) -> str:
    """A file name that is valid on every file system, and never a path into another folder."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text).strip(".") or "_"
