"""A record of an earlier dataset in place of a conversion: its image is stored again, and need not be decoded."""

from dataclasses import dataclass
from typing import Any

from recordmill.imaging import ImageSettings, PreparedImage
from recordmill.imaging.prepare import holds_position
from recordmill.imaging.sniff import sniff
from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.schemas.image_ref import ImageRef


@dataclass(frozen=True, slots=True)
class EarlierRecord:
    """An image as an earlier dataset with the same settings for images has stored it.

    Attributes:
        row: its row in the sidecar.
        encoded: the stored bytes of the image, which the row's digest has confirmed.
        sha256: their digest, in hex.
        is_current: whether the source is known to be unchanged without reading it.
    """

    row: SidecarRow
    encoded: bytes
    sha256: str
    is_current: bool

    def replaces_source(self, ref: ImageRef) -> bool:
        """Whether a record can be made without the source: boxes of a changed image need its original size."""
        return self.is_current and (not self.row.changes or '"boxes"' not in ref.features)

    def as_prepared(self, settings: ImageSettings) -> PreparedImage:
        """The image as a conversion would prepare it."""
        row: Any = self.row  # of an image, so that it has a size
        is_raw = settings.store == "raw" and bool(row.changes)
        return PreparedImage(
            encoded=self.encoded,
            format="RAW" if is_raw else sniff(self.encoded) or "",
            height=row.height,
            width=row.width,
            channels=row.channels,
            moments=None if row.moments is None else tuple(map(tuple, row.moments)),
            changes=tuple(row.changes),
            difference_hash=None if row.difference_hash is None else int(row.difference_hash, 16),
            pixels=row.pixels,
            sha256=self.sha256,
            has_position=not row.changes and holds_position(self.encoded),
        )
