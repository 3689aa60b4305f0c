"""Images without Beam: bytes in, checked and re-encoded bytes out. Light to import, for processes that do only this."""

from recordmill.imaging.prepare import prepare_image, prepare_pixels
from recordmill.imaging.prepared_image import PreparedImage
from recordmill.imaging.versions import imaging_versions
from recordmill.schemas.settings.images import ImageSettings, Resize

__all__ = ["ImageSettings", "PreparedImage", "Resize", "imaging_versions", "prepare_image", "prepare_pixels"]
