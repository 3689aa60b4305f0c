"""A row of an earlier dataset in place of a conversion: it is copied, or its image is stored in another record."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple, cast

from recordmill.imaging import ImageSettings, PreparedImage
from recordmill.imaging.prepare import holds_position
from recordmill.imaging.sniff import sniff
from recordmill.schemas.dataset.json_values import hash_json
from recordmill.schemas.dataset.record_index import RowOrigin
from recordmill.schemas.dataset.sidecar_row import RejectedRow, Row, SidecarRow
from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import LeftOut, Rejected
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.transforms.records.image_record import find_class

_PLACING = frozenset({
    *("compression", "cuts", "duplicates", "exclude", "file_names", "ignore", "include", "index_files", "label_ids"),
    *("limit", "limit_per_class", "listing", "name", "shards", "split_order", "splits"),
})  # fmt: skip
"""Parts of a recipe that say which images there are and where they go, not what their records are."""


def find_decisive(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a recipe that decide what a record is; its version of zlib does not."""
    decisive = {key: value for key, value in recipe.items() if key not in _PLACING}
    versions = decisive.get("versions", {})
    return {**decisive, "versions": {key: value for key, value in versions.items() if key != "zlib"}}


@dataclass(frozen=True)
class ReferenceDigests:
    """Digests of all that decides a record and its row besides the bytes of its source.

    Attributes:
        recipe: what the plan id stands for.
        layout: what the dataset and its Examples are.
        label_map: class ids.
    """

    recipe: Mapping[str, Any]
    layout: ExampleLayout
    label_map: LabelMap

    @cached_property
    def _settings(self) -> str:
        return hash_json(find_decisive(self.recipe))

    @cached_property
    def _classes(self) -> str:
        return hash_json([self.label_map.ids, self.label_map.catch_all, self.label_map.numbers])

    @cached_property
    def _stores_split(self) -> bool:
        return not self.layout.fields.isdisjoint({"split", "split_upper"})

    def digest(self, ref: ImageRef, split: str) -> int:
        """64 bits; 0 for a reference that cannot become a record.

        Boxes and several labels have ids, too, so that all classes decide.
        """
        try:
            own = find_class(ref.label, self.label_map)
        except Rejected:
            return 0
        classes = self._classes if '"label' in ref.features or '"boxes' in ref.features else ""
        text = (
            f"{self._settings}\0{split if self._stores_split else ''}\0{own}\0{ref.key}\0{ref.label!r}\0{ref.features}"
            f"\0{classes}\0{ref.spelling}\0{ref.sha256}\0{ref.offset}\0{ref.length}\0{ref.packing}\0{ref.lacks_file}"
        )
        return 0 if isinstance(ref, Notice) else int.from_bytes(sha256(text.encode()).digest()[:8])


class EarlierRecord(NamedTuple):
    """What an earlier dataset says of an image.

    Attributes:
        row: its row in the sidecar.
        origin: what it was made from.
        is_current: whether the source is known to be unchanged without reading it.
        is_same: whether an unchanged source gives the same record and row; otherwise, only the stored image is the
            same.
        record: the serialised Example, which the row's digest has confirmed; empty if the image was rejected.
        encoded: the stored bytes of the image; empty if records have none.
        sha256: their digest, in hex.
        is_disputed: whether another earlier dataset says otherwise.
    """

    row: Row
    origin: RowOrigin
    is_current: bool
    is_same: bool
    record: bytes = b""
    encoded: bytes = b""
    sha256: str = ""
    is_disputed: bool = False

    def contradicts(self, other: "EarlierRecord") -> bool:
        """Whether both claim to be of the same source, and say different things of it."""
        if (self.is_current, self.is_same) != (other.is_current, other.is_same):
            return False
        one, two = (each.row.record if isinstance(each.row, SidecarRow) else None for each in (self, other))
        return self.row.sha256 != other.row.sha256 or (self.is_same and one != two)

    def replaces_source(self, ref: ImageRef) -> bool:
        """Whether a record can be made without the source: boxes of a changed image need its original size."""
        if not self.is_current or self.is_same:
            return self.is_current
        return not self.written.changes or '"boxes"' not in ref.features

    @property
    def written(self) -> SidecarRow:
        """The row, which is that of a record unless it can be copied."""
        return cast("SidecarRow", self.row)

    @staticmethod
    def rejection(row: RejectedRow) -> Rejected:
        """Why an image was rejected or left out."""
        if row.left_out is None:
            return Rejected(row.stage, str(row.rejected), row.detail, row.sha256 or "")
        left_out = LeftOut(row.left_out, row.detail)
        left_out.sha256 = row.sha256 or ""
        return left_out

    def as_prepared(self, settings: ImageSettings) -> PreparedImage:
        """The image as a conversion would prepare it."""
        row: Any = self.written  # of an image, so that it has a size
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
