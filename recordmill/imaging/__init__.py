"""Images without Beam: bytes in, checked and re-encoded bytes out.

It is light to import, for processes that do only this.
"""

from recordmill.imaging.pillow_decode import find_missing_decoder, imaging_versions
from recordmill.imaging.pixels import PreparedImage
from recordmill.imaging.prepare import prepare_image
from recordmill.schemas.settings.images import ImageSettings, Resize

__all__ = [
    "ImageSettings",
    "PreparedImage",
    "Resize",
    "find_missing_decoder",
    "imaging_versions",
    "prepare_image",
]
