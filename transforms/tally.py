"""What became of references in a pipeline without shards of its own: counts that are added up in any order."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.dataset.sidecar_row import RejectedRow
from recordmill.schemas.dataset.totals import AnnotationTotals, BoxExample, RowTotals, Totals
from recordmill.schemas.formatting import format_count
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_digest import add_digests, digest_of
from recordmill.transforms.records.annotations import add_image
from recordmill.transforms.records.convert_image import ConvertedImage


@dataclass(slots=True)
class Tally(Totals):
    """Counts of some references, and of the files that were written.

    Attributes:
        assigned: references by split, before anything was read.
        splits: totals by split: the Examples that were built, and what was rejected. What was rejected when it was
            listed is under the empty name.
        annotations: boxes and labels that are in no Example.
        digest: `schemas.reference_digest.digest_of` the references, added up.
        rejected_such: for each reason the first rejected reference by key, in words.
        problems: sentences that fail the run.
        files: the files that were written; their numbers are read from them.
    """

    assigned: Counter[str] = field(default_factory=Counter)
    splits: dict[str, RowTotals] = field(default_factory=dict)
    annotations: AnnotationTotals = field(default_factory=AnnotationTotals)
    digest: int = 0
    rejected_such: dict[str, BoxExample] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    files: list[ShardReport] = field(default_factory=list)

    def add(self, split: str, ref: ImageRef, image: ConvertedImage) -> None:
        """Adds the outcome of one reference."""
        row = image.row
        self.splits.setdefault(split, RowTotals()).add(row)
        self.digest = add_digests(self.digest, digest_of(ref))
        if image.annotations is not None:
            add_image(self.annotations, row.key, image.annotations)
        if isinstance(row, RejectedRow):
            such = BoxExample(row.key, 0, " ".join(f"{row.key} ({row.detail})".split()))
            self.rejected_such[row.rejected] = min(such, self.rejected_such.get(row.rejected, such))

    def find_loss(self) -> str:
        """Why a split's files do not hold what was not rejected, in a sentence; the empty string if they do."""
        for name, references in sorted(self.assigned.items()):
            rejected = self.splits.get(name, RowTotals()).rejected.total()
            written = sum(file.records for file in self.files if file.split == name)
            if written + rejected != references:
                found = format_count(written, "record")
                return (
                    f"split {name} has {format_count(references, 'reference')}, {rejected:,} of them rejected, and its "
                    f"files hold {found}: something was lost or written twice"
                )
        return ""


def merge_tallies(tallies: Iterable[Tally]) -> Tally:
    """Adds tallies up, in any order."""
    total = Tally()
    for tally in tallies:
        total.merge(tally)
    return total
