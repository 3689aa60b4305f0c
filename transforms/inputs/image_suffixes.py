"""The extensions of images: one table for recognition, for the listing and for messages."""

import posixpath

IMAGE_SUFFIXES = (
    *("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff", "ppm"),
    *("avif", "heic", "jp2"),  # accepted only if a setting names them, as their rejection says
    *("jpe", "jfif", "mpo", "dib", "pgm", "pbm", "pnm", "heif"),
    *("j2k", "j2c", "jpc", "jpf", "jpx"),
)
"""The extensions of images that can be converted, the usual ones first."""

IMAGE_ENDINGS = tuple(f".{suffix}" for suffix in IMAGE_SUFFIXES)
"""The same with their dots. Only recognition goes by names: a conversion looks at the bytes."""

IMAGE_PATTERNS = tuple(
    "*." + "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in suffix)
    for suffix in IMAGE_SUFFIXES
)
"""The same as patterns in gitignore's syntax, for either case."""

PICTURE_SUFFIXES = frozenset(
    {
        *IMAGE_SUFFIXES,
        *("3fr", "arw", "cr2", "cr3", "crw", "dng", "erf", "fff", "iiq", "kdc", "mef", "mos"),
        *("mrw", "nef", "nrw", "orf", "pef", "raf", "raw", "rw2", "rwl", "sr2", "srf", "srw"),
        *("x3f", "jxl"),
    }
)
"""The same, and those of raw photographs and other pictures, which are rejected by name."""


def without_image_ending(path: str) -> str:
    """Returns a name without its extension, if that is one of an image."""
    stem, ending = posixpath.splitext(path)
    return stem if ending.lower() in IMAGE_ENDINGS else path


def is_image_name(path: str) -> bool:
    """Returns whether a file is named like a picture, which may be one that cannot be converted."""
    _, dot, suffix = path.rpartition(".")
    return bool(dot) and suffix.lower() in PICTURE_SUFFIXES
