"""The versions on which output bytes depend."""

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


def imaging_versions() -> dict[str, str]:
    """Versions of the libraries that decode, convert and encode pixels: same versions and same input, same bytes."""
    versions = {"pillow": pillow_version, "simplejpeg": simplejpeg.__version__}
    if (turbo := features.version_feature("libjpeg_turbo")) is not None:
        versions["pillow.libjpeg_turbo"] = turbo
    for feature, name in _PILLOW_LIBRARIES.items():
        versions[f"pillow.{name}"] = features.version(feature) or "absent"
    return versions
