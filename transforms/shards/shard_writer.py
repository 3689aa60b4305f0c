"""Writes a plan's shards: orders the references of each, converts them, and finishes its files."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice, pairwise
from typing import Any
from unicodedata import normalize

from recordmill import storage
from recordmill.schemas.dataset.file_names import PICTURES
from recordmill.schemas.dataset.record_index import UNKNOWN, RowOrigin
from recordmill.schemas.dataset.side_files import Row
from recordmill.schemas.dataset.totals import ShardReport
from recordmill.schemas.digests import newest_version, source_digest_of
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ShardBatch
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.storage.dataset_files import shard_path
from recordmill.transforms.planning.run_plan import RunPlan
from recordmill.transforms.planning.runs import RunSettings
from recordmill.transforms.records.convert_image import (
    ConvertedImage,
    convert_image,
    copy_earlier,
    note_correction,
)
from recordmill.transforms.records.earlier_datasets import (
    JoinedReference,
    ReferenceDigests,
    find_untouched,
    join_earlier,
)
from recordmill.transforms.records.exclude_images import exclude_image, find_lines, list_digests
from recordmill.transforms.records.image_functions import FunctionError
from recordmill.transforms.shards import shard_files
from recordmill.transforms.shards.read_ahead import decoding_limit, pool_for
from recordmill.transforms.shards.shard_files import WrittenShard, failed_report


def find_duplicate_key(refs: list[ImageRef], unit: str) -> str | None:
    """Returns a sentence on two references with the same key, or None if there are none.

    `refs` are in their final order.
    """
    for one, other in pairwise(refs):
        if one.key == other.key and one.uri == other.uri:
            by = "by two rows, files or inputs: remove one, or give each row a key of its own"
            leave_out = "the settings ignore and include leave out a file"
            return f"the {unit} {one.key!r} is listed twice ({one.uri}), {by}; {leave_out}"
        if one.key == other.key:
            is_same_name = normalize("NFC", one.uri) == normalize("NFC", other.uri)
            # It may differ in spelling.
            places = [ascii(ref.uri) if is_same_name else ref.uri for ref in (one, other)]
            remedy = "rename one, or give inputs names"
            return f"two {unit}s have the key {one.key!r}: {places[0]} and {places[1]}; {remedy}"
    return None


def needs_unpacking(refs: Iterable[ImageRef]) -> bool:
    """Returns whether files must be unpacked to reach the images.

    Each process would repeat that.
    """
    return any(ref.packing and not ref.packing.startswith("zip:") for ref in refs)


UNSURE_NANOSECONDS = 2_000_000_000
"""Within this time, a file may change and keep its modification time, on file systems with coarse
timestamps."""


_DIGESTS_AT_ONCE = 256


class InputError(Exception):
    """An image could not be read because its store failed, which says nothing about the image."""


class WorkerDiedError(Exception):
    """A worker process ended before its task was done; the message says what to do."""


ConvertBatch = Callable[[ShardBatch, str], Generator[ConvertedImage, None, None]]
"""Converts references of a split to records, in their order, which is the final one."""


@dataclass
class ShardWriter:
    """Writes shards of one dataset in this process.

    Attributes:
        settings: what the dataset is.
        plan: its plan.
        run: where and how this run works.
        threads: how many images are decoded at once.
        in_line: whether the thread that writes a shard of local files also reads and converts them.
            Other threads would only compete for the interpreter if nothing is decoded, or if other
            processes use the processors.
    """

    settings: DatasetSettings
    plan: RunPlan
    run: RunSettings
    threads: int
    in_line: bool

    @cached_property
    def count_done(self) -> Callable[[int], None]:
        """Called with the number of references that are done; worker processes replace it."""
        return self.run.progress.add_done

    @cached_property
    def _layout(self) -> ExampleLayout:
        return ExampleLayout(self.settings, self.plan.dataset.label_map.attributes)

    @cached_property
    def _digests(self) -> ReferenceDigests:
        dataset = self.plan.dataset
        return ReferenceDigests(
            dataset.recipe, self._layout, dataset.label_map, self.run.corrections
        )

    @cached_property
    def _previous_shards(self) -> dict[str, str]:
        """Returns the paths of the previous dataset's shards by digest.

        The result is empty in a store, where copying them would save nothing.
        """
        previous = self.plan.decision.replaced
        if previous is None or not storage.is_local(previous.folder):
            return {}
        return {
            each.sha256: storage.join(previous.folder, each.name) for each in previous.marker.shards
        }

    def write(
        self, split: str, index: int, batch: ShardBatch, convert: ConvertBatch | None = None
    ) -> WrittenShard | ShardReport:
        """Writes one shard.

        Returns its report at once if it was finished before or cannot be written.

        Args:
            split: the shard's split.
            index: its place in the plan.
            batch: its references, in any order.
            convert: converts them to records; by default `self.convert`, in this process.
        """
        ordered = batch.sort()
        refs = ordered.refs
        if problem := find_duplicate_key(refs, self.settings.unit):
            return failed_report(split, index, len(refs), problem)
        staging = self.plan.decision.staging
        mark = shard_files.fingerprint(batch)
        if finished := shard_files.find_finished(staging, split, index, mark):
            self.count_done(len(refs))
            return finished
        shard = WrittenShard(staging, split, index, mark, self.settings.compression, ordered.orders)
        try:
            if not self._keep_untouched(shard, ordered, split):
                with closing((convert or self.convert)(ordered, split)) as images:
                    shard.write(self._count(images))
            rows = shard.report.rows
            if self.settings.report and rows.references > rows.records:
                path = shard_path(staging, split, index, PICTURES)
                if shard.shown:
                    shard_files.write_rejected_pictures(path, refs, shard.shown, self.settings)
                else:
                    storage.remove_files([path])  # an earlier attempt may have left it
            return shard
        except (FunctionError, WorkerDiedError) as error:
            problem = str(error)
        except OSError as error:  # in the output; errors in images are InputErrors
            problem = storage.explain_output_error(error, self.plan.decision.output)
        return failed_report(split, index, len(refs), problem)

    def _keep_untouched(self, shard: WrittenShard, batch: ShardBatch, split: str) -> bool:
        """Keeps a shard's file in the previous dataset if the same would be written again.

        Returns whether it did.
        """
        previous, reuse = self.plan.decision.replaced, self.plan.reuse
        if previous is None or len(reuse) != 1:
            return False
        if not reuse[0].same_files or reuse[0].dataset.folder != previous.folder:
            return False
        digest = partial(self._digests.digest, split=split)
        found = find_untouched(reuse[0], batch, self.settings.seed, digest)
        file, rows = found or (None, [])
        pairs = list(zip(batch.refs, rows, strict=True)) if file else []
        if file is None or any(self._is_excluded(ref, each.row) for ref, each in pairs):
            return False
        label_map = self.plan.dataset.label_map
        images = (copy_earlier(ref, each, label_map, each.origin.source) for ref, each in pairs)
        images = (self._note_correction(each) for each in images)
        return shard.keep(self._count(images), storage.join(previous.folder, file.name), file)

    def _is_excluded(self, ref: ImageRef, row: Row) -> bool:
        exclusions, max_bytes = self.run.exclusions, self.settings.images.max_bytes
        return bool(
            exclusions and find_lines(ref, row.sha256, exclusions, max_bytes, list_digests(row))
        )

    def finish(self, shard: WrittenShard | ShardReport) -> ShardReport:
        """Reads a shard back and renames its files; see `WrittenShard.finish`."""
        if isinstance(shard, ShardReport):
            return shard
        try:
            return shard.finish(self._previous_shards)
        except OSError as error:
            report = shard.report
            problem = storage.explain_output_error(error, self.plan.decision.output)
            return failed_report(report.split, report.index, report.rows.references, problem)

    def convert(self, batch: ShardBatch, split: str) -> Generator[ConvertedImage, None, None]:
        """Yields the records of references in their order.

        Raises:
            InputError: an image's store failed.
        """
        is_local = storage.is_local(batch.refs[0].uri)
        in_line = self.in_line and is_local
        decoding: AbstractContextManager[Any] = nullcontext()
        if not in_line:
            decoding = decoding_limit(self.threads)
        layout, label_map, exclusions = (
            self._layout,
            self.plan.dataset.label_map,
            self.run.exclusions or None,
        )
        max_bytes = self.settings.images.max_bytes

        def convert(joined: JoinedReference) -> ConvertedImage:
            ref, origin, earlier, damaged = joined
            try:
                given = (layout, label_map, decoding, split, earlier, origin)
                image = convert_image(ref, *given, self.run.corrections)
                if exclusions:
                    image = exclude_image(ref, image, exclusions, label_map, max_bytes)
            except OSError as error:
                raise InputError(f"{ref.uri} cannot be read: {error}") from error
            image.damaged = damaged
            return self._note_correction(image)

        origins = self._find_origins(batch.refs, split)
        joined = join_earlier(self.plan.reuse, origins, batch.orders, self.settings.seed)
        if in_line:
            images = (convert(each) for each in joined)
        else:
            pool = pool_for(self.threads, is_local)
            images = pool.map(
                convert, joined, lambda each: each.ref.expected_bytes, ConvertedImage.size
            )
        with closing(joined), closing(images):
            yield from images

    def _note_correction(self, image: ConvertedImage) -> ConvertedImage:
        if self.run.corrections:
            note_correction(image, self.run.corrections)
        return image

    def _find_origins(
        self, refs: Iterable[ImageRef], split: str
    ) -> Iterator[tuple[ImageRef, RowOrigin]]:
        """Yields references with digests, many at a time.

        One by one, between images, takes three times as long.
        """
        if self.settings.source.late_labels:  # then no record is copied, see `convert_image`
            yield from ((ref, UNKNOWN) for ref in refs)
            return
        newest, rest = time.time_ns() - UNSURE_NANOSECONDS, iter(refs)
        while some := list(islice(rest, _DIGESTS_AT_ONCE)):
            sources = [
                0 if newest_version([ref]) > newest else source_digest_of(ref) for ref in some
            ]
            references = [
                0 if newest_version(ref.files) > newest else self._digests.digest(ref, split)
                for ref in some
            ]
            yield from zip(some, map(RowOrigin, sources, references), strict=True)

    def _count(self, images: Iterable[ConvertedImage]) -> Iterator[ConvertedImage]:
        for image in images:
            self.count_done(1)
            yield image
