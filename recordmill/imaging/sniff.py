"""Recognises a format by a file's first bytes, never by its name."""

import re

# Formats that can be accepted. PPM means the family: bit, gray and pixel maps, plain or binary, and float maps.
_ACCEPTABLE = (
    ("JPEG", re.compile(rb"\xff\xd8\xff")),
    ("PNG", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("GIF", re.compile(rb"GIF8[79]a")),
    ("WEBP", re.compile(rb"RIFF....WEBP", re.DOTALL)),
    ("BMP", re.compile(rb"BM")),
    ("TIFF", re.compile(rb"II[*+]\0|MM\0[*+]")),
    ("PPM", re.compile(rb"P[1-6f]\s|P[1-6]#")),
    # AVIF's own brand, or a general one with AVIF among the compatible brands, in the forms that were seen in files.
    ("AVIF", re.compile(rb"....ftyp(?:avi[fs]|m[is]f1.{4}(?:.{4}){0,7}avi[fs])", re.DOTALL)),
    ("HEIC", re.compile(rb"....ftyp(?:hei[cfmsx]|hev[cmsx]|m[is]f1)", re.DOTALL)),
    ("JPEG2000", re.compile(rb"\0\0\0\x0cjP {2}\r\n\x87\n|\xff\x4f\xff\x51")),
)

# Formats that are never decoded, known for a better message than "unknown".
_OTHERS = (
    ("JPEG XL", re.compile(rb"\xff\x0a|\0\0\0\x0cJXL \r\n\x87\n")),
    ("Photoshop", re.compile(rb"8BPS")),
    ("TGA", re.compile(rb".[\0\x01][\x01-\x03\x09-\x0b].{13}[\x01\x08\x0f\x10\x18\x20]", re.DOTALL)),
    ("DDS", re.compile(rb"DDS ")),
    ("ICO", re.compile(rb"\0\0\x01\0")),
    ("CUR", re.compile(rb"\0\0\x02\0")),
    ("ICNS", re.compile(rb"icns")),
    ("SGI", re.compile(rb"\x01\xda")),
    ("PCX", re.compile(rb"\x0a[\0\x02-\x05]\x01")),
    ("EPS", re.compile(rb"%!PS|\xc5\xd0\xd3\xc6")),
    ("PDF", re.compile(rb"%PDF-")),
    ("SVG", re.compile(rb"\s*<(?:svg|\?xml)")),
    ("MSP", re.compile(rb"DanM|LinS")),
    ("GRIB", re.compile(rb"GRIB")),
    ("DCX", re.compile(rb"\xb1\x68\xde\x3a")),
    ("QOI", re.compile(rb"qoif")),
    ("OpenEXR", re.compile(rb"v/1\x01")),
    ("Radiance HDR", re.compile(rb"#\?(?:RADIANCE|RGBE)")),
    ("FITS", re.compile(rb"SIMPLE {2}=")),
    ("Sun raster", re.compile(rb"\x59\xa6\x6a\x95")),
    ("WMF", re.compile(rb"\xd7\xcd\xc6\x9a")),
    ("XPM", re.compile(rb"/\* XPM \*/")),
    ("XBM", re.compile(rb"\s*#define\s+\S+_width")),
    ("BLP", re.compile(rb"BLP[12]")),
    ("DICOM", re.compile(rb".{128}DICM", re.DOTALL)),
    ("HDF5", re.compile(rb"\x89HDF\r\n\x1a\n")),
    ("ZIP archive", re.compile(rb"PK\x03\x04")),
    ("gzip", re.compile(rb"\x1f\x8b")),
)


def sniff(data: bytes) -> str | None:
    """The format that the first bytes announce: one of `settings.FORMATS` or `OPTIONAL_FORMATS`, or None.

    The rest of the file may be anything.
    """
    for name, pattern in _ACCEPTABLE:  # for every image: a generator would take twice as long
        if pattern.match(data):
            return name
    return None


def sniff_other(data: bytes) -> str | None:
    """The name of a well-known format that is never accepted, or None. For messages."""
    return next((name for name, pattern in _OTHERS if pattern.match(data)), None)
