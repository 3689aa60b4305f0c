"""Converts a few images to foresee what all will take: bytes, processor time and memory."""

import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from threading import BoundedSemaphore

import numpy as np

from recordmill.imaging.jpeg_header import read_jpeg_header
from recordmill.imaging.sniff import sniff
from recordmill.schemas.dataset.record_index import RowOrigin
from recordmill.schemas.dataset.sidecar_row import RejectedRow, SidecarRow
from recordmill.schemas.digests import order_of, source_digest_of
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.outcome import Price
from recordmill.schemas.reference_batch import ReferenceBatch, ReferenceBatchCoder
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.storage.record_reader import FRAMING_BYTES
from recordmill.transforms.planning.plan import ReusableDataset, class_numbers
from recordmill.transforms.planning.summary import SAMPLE_SIZE, Summary
from recordmill.transforms.records.convert_image import ConvertedImage, convert_image
from recordmill.transforms.records.earlier_record import EarlierRecord
from recordmill.transforms.shards.earlier_datasets import JoinedReference, join_earlier
from recordmill.transforms.shards.processors import available_processors
from recordmill.transforms.shards.progress import PROGRESS, peak_memory
from recordmill.transforms.shards.read_ahead import ReadAhead
from recordmill.transforms.shards.shard_files import Fingerprint, WrittenShard

_WRITTEN_BYTES, _MOST_TIMES = 4 * 2**20, 8
"""Bytes of the sample that are written to see what that costs, and how many times at most."""

_REFERENCE_SECONDS = 60e-6
"""CPU to sort, shuffle and order a reference, and to pass an image between threads."""

_PROCESS_SECONDS, _END_SECONDS = 0.4, 0.7
"""CPU of a further process, and of what a run does once: stages of the runner, companion files, report."""

_REFERENCE_BYTES, _IN_PROGRESS_BYTES = 870, 100 * 2**20
"""Memory of DirectRunner for each reference (docs/scale.md), and of images in progress."""


def _is_sampled_alike(earlier: EarlierRecord) -> bool:
    """Whether an image would be stored as it is if JPEGs did not keep their sampling."""
    if not earlier.written.changes or sniff(encoded := earlier.encoded) != "JPEG":
        return True
    return read_jpeg_header(encoded).subsampling == "4:2:0"


@dataclass(frozen=True, slots=True)
class SampledImage:
    """An image of a sample.

    Attributes:
        ref: the image.
        converted: what it became.
        seconds: CPU to read and convert it.
    """

    ref: ImageRef
    converted: ConvertedImage
    seconds: float

    @property
    def stored_bytes(self) -> int:
        """Of its record, with framing."""
        return self.converted.size() + FRAMING_BYTES if self.converted.record is not None else 0


@dataclass(frozen=True, slots=True)
class Sample:
    """Some images, and what they took."""

    images: Sequence[SampledImage]

    @property
    def source_bytes(self) -> int:
        """Of their files."""
        return sum(each.ref.expected_bytes for each in self.images)

    @property
    def growth(self) -> float:
        """Bytes of a record for each byte of its source."""
        rows = ((each, each.converted.row) for each in self.images)
        kept = [each for each, row in rows if not isinstance(row, RejectedRow) or row.left_out]
        before = sum(each.ref.expected_bytes for each in kept)
        return sum(each.stored_bytes for each in kept) / before if before else 1.0

    @property
    def has_reencoded(self) -> bool:
        """Whether any image was encoded again."""
        rows = (each.converted.row for each in self.images)
        return any("reencoded" in row.changes for row in rows if isinstance(row, SidecarRow))

    def foresee_seconds(self, summary: Summary) -> float:
        """CPU seconds to convert all images: by regression on the sizes of the files."""
        found, sizes = np.array([(each.seconds, each.ref.expected_bytes) for each in self.images]).T
        whole, apart = sum(split.bytes for split in summary.splits.values()), sizes - sizes.mean()
        slope = max(0.0, float(apart @ found / (apart @ apart))) if apart.any() else 0.0
        total = summary.references * (found.mean() - slope * sizes.mean()) + slope * whole
        return max(0.0, float(total))


def convert_sample(
    summary: Summary, settings: DatasetSettings, reuse: Sequence[ReusableDataset] = (), as_before: bool = False
) -> Sample:
    """Converts the summary's sample, which is chosen by hash: the same images give the same sizes.

    The functions of `images.function` and `keep` are called twice for each image.

    Args:
        summary: what was listed.
        settings: what the dataset is.
        reuse: earlier datasets whose images may be stored again.
        as_before: whether JPEGs lose their sampling, as in version 0.1.
    """
    asked = settings
    if as_before and settings.images.subsampling == "auto":
        settings = replace(settings, images=replace(settings.images, subsampling="by_format"))
    numbers = class_numbers(summary, settings)
    labels = {*numbers, *(ref.label for _, _, ref in summary.sample)}
    label_map = LabelMap(dict.fromkeys(labels, 0), numbers=numbers)
    decoding, layout = BoundedSemaphore(available_processors()), ExampleLayout(settings)

    def convert(joined: JoinedReference) -> SampledImage:
        ref, earlier = joined.ref, joined.earlier
        if earlier and settings != asked and not _is_sampled_alike(earlier):
            earlier = None
        began = time.thread_time()
        converted = convert_image(ref, layout, label_map, decoding, earlier=earlier, twice=True)
        return SampledImage(ref, converted, time.thread_time() - began)

    refs = sorted((ref for _, _, ref in summary.sample), key=lambda ref: order_of(settings.seed, ref.key))
    references = ((ref, RowOrigin(source_digest_of(ref))) for ref in refs)
    joined = join_earlier(reuse, references, settings.seed)  # of least hashes, so that few sidecars are read
    with closing(ReadAhead(SAMPLE_SIZE, batch_items=1)) as pool:  # stores are waited for
        return Sample(list(pool.map(convert, joined, lambda each: each.ref.expected_bytes, lambda _: 0)))


def price_run(sample: Sample, summary: Summary, settings: DatasetSettings, processes: int) -> Price | None:
    """What a run will cost, with what it has cost so far; None if there is nothing to tell it by.

    Raises:
        OSError: the sample cannot be written to the temporary folder.
    """
    if not sample.images:
        return None
    references, spent = summary.references, PROGRESS.cpu_seconds()
    batch = ReferenceBatchCoder(ReferenceBatch).encode(ReferenceBatch.of([each.ref for each in sample.images]))
    seconds, share = _write([each.converted for each in sample.images], settings.compression)
    whole = sum(split.bytes for split in summary.splits.values())
    # By the ratio: where few files are much larger than the others, regression is further off for bytes.
    ratio = sum(each.stored_bytes for each in sample.images) / max(1, sample.source_bytes)
    rest = (
        sample.foresee_seconds(summary)
        + references * (seconds + _REFERENCE_SECONDS)
        + (processes - 1) * _PROCESS_SECONDS
        + _END_SECONDS
    )
    return Price(
        cpu_seconds=round(spent + rest, 2),
        memory=peak_memory() + _IN_PROGRESS_BYTES + _REFERENCE_BYTES * references,
        bytes_read=whole,
        bytes_shuffled=round(len(batch) * references / len(sample.images)),
        bytes_written=round(share * ratio * whole),
        minutes=round((spent + rest / processes) / 60, 2),
    )


def _write(images: Sequence[ConvertedImage], compression: str) -> tuple[float, float]:
    """CPU seconds to write an image to a shard and to read it back, and bytes in the shard for each of its record."""
    some, size = list[ConvertedImage](), 0
    for image in images:
        if size < _WRITTEN_BYTES:
            some.append(image)
            size += image.size()
    some *= max(1, min(_MOST_TIMES, _WRITTEN_BYTES // max(size, 1)))
    with tempfile.TemporaryDirectory(prefix="recordmill-sample-") as folder:
        began = time.thread_time()
        mark = Fingerprint("0" * 64, "0" * 64)
        copies = (replace(image) for image in some)  # writing lets go of their records
        shard = WrittenShard(folder, "sample", 0, mark, compression, 0)
        shard.write(copies)
        report = shard.finish({})
        seconds = time.thread_time() - began
    before = sum(image.size() + FRAMING_BYTES for image in some if image.record is not None)
    return seconds / len(some), report.bytes / before if before else 1.0
