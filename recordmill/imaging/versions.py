"""The versions on which output bytes depend, and whether the libraries are there."""

from collections.abc import Collection
from importlib import metadata
from importlib.util import find_spec

import simplejpeg
from PIL import __version__ as pillow_version
from PIL import features

# simplejpeg contains its own libjpeg-turbo, determined by its version and not reported separately.
_PILLOW_LIBRARIES = {
    "jpg": "libjpeg",
    "libtiff": "libtiff",
    "webp": "libwebp",
    "zlib": "zlib",
    "littlecms2": "littlecms2",
}

_OPTIONAL = {"AVIF": ("avif", "libavif"), "JPEG2000": ("jpg_2000", "openjpeg")}


def find_missing_decoder(formats: Collection[str]) -> str:
    """A sentence about the first format that cannot be decoded here; the empty string if there is none."""
    for name, (feature, library) in _OPTIONAL.items():
        if name in formats and not features.check(feature):
            return f"{name} needs a Pillow with {library}, and the one installed lacks it"
    if "HEIC" in formats and find_spec("pillow_heif") is None:
        return "HEIC needs pillow-heif, which is not installed: pip install '.[heic]' in a clone"
    return ""


def imaging_versions(formats: Collection[str] = ()) -> dict[str, str]:
    """Versions of the libraries that decode, convert and encode pixels: same versions and same input, same bytes.

    Args:
        formats: the accepted formats; of those in `settings.OPTIONAL_FORMATS`, the decoders are added.
    """
    versions = {"pillow": pillow_version, "simplejpeg": simplejpeg.__version__}
    if (turbo := features.version_feature("libjpeg_turbo")) is not None:
        versions["pillow.libjpeg_turbo"] = turbo
    for feature, name in _PILLOW_LIBRARIES.items():
        versions[f"pillow.{name}"] = features.version(feature) or "absent"
    for name, (feature, library) in _OPTIONAL.items():
        if name in formats:
            versions[f"pillow.{library}"] = features.version(feature) or "absent"
    if "HEIC" in formats:
        versions["pillow_heif"] = metadata.version("pillow_heif")
    return versions
