"""Images without Beam: bytes in, checked and re-encoded bytes out. Light to import, for processes that do only this."""

from recordmill.transforms.imaging.bad_image import BadImage
from recordmill.transforms.imaging.prepare import prepare_image, prepare_pixels
from recordmill.transforms.imaging.prepared_image import PreparedImage
from recordmill.transforms.imaging.settings import ImageSettings, Resize
from recordmill.transforms.imaging.versions import imaging_versions

__all__ = [
    "BadImage",
    "ImageSettings",
    "PreparedImage",
    "Resize",
    "imaging_versions",
    "prepare_image",
    "prepare_pixels",
]
