"""Verifies a dataset, or any folder of TFRecord files: first each shard, concurrently, then all of them as a whole.

On request, images must have no metadata: Exif, positions, XMP, comments, data after their end. A dataset's companion
files must be unchanged, and name the same classes.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from recordmill import storage
from recordmill.imaging.sniff import sniff, sniff_other
from recordmill.imaging.strip_metadata import UnstrippableError, find_metadata
from recordmill.reading.dataset import SHARD_NUMBER, Dataset, Shard, find_shards
from recordmill.reading.example import Expectations, ParsedExample, expect
from recordmill.reading.verify.finding import Finding
from recordmill.reading.verify.verify_marker import check_marker
from recordmill.reading.verify.verify_pixels import UNMISTAKABLE, ImageDecoders, check_pixels
from recordmill.reading.verify.verify_shard import Level, ShardCheck, ShardWorkers, unchecked, verify_shard
from recordmill.schemas.dataset.file_names import FOR_PEOPLE, LABELS, MARKER, SIDECARS
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.label_map import LabelMap, tfds_names
from recordmill.schemas.settings.images import STRIPPABLE
from recordmill.storage.many_files import digest_of
from recordmill.storage.stores.store import in_parallel


class MetadataCheck:
    """Looks for metadata in all features that hold encoded images.

    Attributes:
        images: number of images that were read, by any thread.
    """

    def __init__(self, expected: Expectations) -> None:
        """Looks into the image features of a dataset, and into all others whose values begin like an image."""
        self._keys = expected.image_keys if expected.images_are_stated else ()
        self._raw = not expected.image_keys
        self.images = 0

    def __call__(self, example: ParsedExample) -> Iterator[tuple[str, str]]:
        """Yields the kind and the text of each problem with a record's images."""
        for key, kind, values in example.items():
            for data in values if kind == "bytes" else ():
                file_format = sniff(data) or sniff_other(data)
                if file_format in UNMISTAKABLE or (key in self._keys and data):
                    self.images += 1
                    if problem := _find_problem(data, file_format):
                        yield "metadata", f"the image in {key} {problem}"

    def conclude(self) -> Iterator[Finding]:
        """Yields a finding if nothing was proved, since no record has an image."""
        if not self.images and not self._raw:
            yield Finding("metadata", "no record has an encoded image, so metadata cannot be ruled out")


def _find_problem(data: bytes, file_format: str | None) -> str:
    if file_format not in STRIPPABLE:
        return f"is {file_format or 'of an unknown format'}: metadata in this format cannot be ruled out"
    try:
        found = find_metadata(data, file_format)
    except UnstrippableError as error:
        return f"cannot be read to its end: {error}"
    return f"has metadata: {', '.join(found)}" if found else ""


def check_side_files(dataset: Dataset, marker: Marker) -> list[Finding]:
    """The problems of the marker's companion files: first the missing ones, then the others, in its order.

    A list of classes that contradicts the marker's labels is reported with its first differing line, any other file by
    its digest, if the marker has one (`run.digests`).
    """
    found = in_parallel(lambda name: _check_side_file(dataset, marker, name), marker.files)
    return sorted(filter(None, found), key=lambda finding: finding.kind != "missing")


def _check_side_file(dataset: Dataset, marker: Marker, name: str) -> Finding | None:
    path = storage.join(dataset.folder, name)
    digest = (marker.run.digests or {}).get(name)
    if storage.size_of(path) is None:
        return Finding("missing", "the file is missing", name)
    try:
        if (forms := _label_maps(name, dataset.labels)) and (problem := _compare(storage.read_range(path), forms)):
            return Finding("names", problem, name)
        if digest is None or digest_of(path) == digest:
            return None
    except OSError as error:
        return Finding("unreadable", f"the file cannot be read: {(error.strerror or str(error)).lower()}", name)
    if name in FOR_PEOPLE:
        return Finding("edited", "the file was edited after the dataset was made", name)
    changed = "the file has another sha256 than when the dataset was made: it was changed or damaged"
    return Finding("sha256", changed, name)


def _label_maps(name: str, labels: Mapping[str, int]) -> list[str]:
    """The valid contents of a file that lists the classes; empty for other files."""
    label_map = LabelMap(dict(labels))
    if name == LABELS:
        return [label_map.as_text("id:name"), label_map.as_text("name")]
    if name == "label_map.pbtxt":
        return [label_map.as_pbtxt()]
    if name.endswith(f".{LABELS}"):
        return ["".join(f"{each}\n" for each in tfds_names(labels))]
    return []


def _compare(content: bytes, forms: list[str]) -> str:
    """The first line that differs from the form that fits best; the empty string if one fits."""
    text = content.decode("utf-8", "replace")
    if text in forms:
        return ""
    lines = text.removesuffix("\n").split("\n") if text else []
    pairs = [list(zip_longest(lines, form.removesuffix("\n").split("\n") if form else [])) for form in forms]
    best = max(pairs, key=lambda form: sum(there == wanted for there, wanted in form))
    number, (there, wanted) = next((item for item in enumerate(best, 1) if item[1][0] != item[1][1]), (0, ("", "")))
    if not number:
        return "the last line has no line end"
    is_there = "is missing" if there is None else f"is {there!r:.80}"
    says = "nothing more" if wanted is None else f"{wanted!r:.80}"
    return f"line {number} {is_there} and recordmill.json says {says}"


_SHOWN_DUPLICATES = 100
_WORTH_PROCESSES = 2**28  # bytes: smaller files are read in the time that processes take to start


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying.

    Attributes:
        dataset: what was verified.
        level: how thoroughly.
        checks: file by file, in the dataset's order.
        findings: all findings: file by file, then those about the whole dataset.
    """

    dataset: Dataset
    level: Level
    checks: tuple[ShardCheck, ...]
    findings: tuple[Finding, ...]

    @property
    def records(self) -> int:
        """The number of intact frames."""
        return sum(check.records for check in self.checks)

    @property
    def bytes(self) -> int:
        """The size of the files."""
        return sum(check.bytes for check in self.checks)

    @property
    def failed(self) -> int:
        """The number of findings that are not notes."""
        return sum(not finding.is_note for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "path": self.dataset.folder,
            "kind": self.dataset.kind,
            "level": self.level,
            "files": len(self.checks),
            "records": self.records,
            "bytes": self.bytes,
            "damages": self.failed,
            "notes": len(self.findings) - self.failed,
            "findings": [asdict(finding) for finding in self.findings],
        }


def verify_dataset(
    dataset: Dataset,
    level: Level = "files",
    threads: int = 0,
    progress: Callable[[int], None] = lambda records: None,
    no_metadata: bool = False,
) -> Verification:
    """Reads a dataset and compares it with its metadata.

    Args:
        dataset: of any kind.
        level: `frames`: framing, both checksums, that every record is an Example, features' kinds, counts. `files`:
            also sizes, digests, sidecars, companion files, missing and stale files, labels and class names,
            images in several splits; the frames of a shard are not checked if it has the digest in the marker
            (`verify_shard`). `pixels`: also decodes every image.
        threads: files at once; 0 for one per processor.
        progress: called from any thread with the number of records since the last call.
        no_metadata: whether images must have none (`MetadataCheck`); all records are read then, at any level.

    Returns:
        The result; no content of a file makes this raise.
    """
    expected = expect(dataset)
    count = min(threads or os.cpu_count() or 1, max(len(dataset.shards), 1))
    metadata = MetadataCheck(expected) if no_metadata else None
    walked = sum(storage.size_of(shard.path) or 0 for shard in dataset.shards if _is_walked(shard, level))
    alone = count > 1 and walked >= _WORTH_PROCESSES and not metadata
    with (
        ShardWorkers(count) as workers,
        ImageDecoders(expected.max_pixels, count) as decoders,
        ThreadPoolExecutor(count) as pool,
    ):

        def check_images(example: ParsedExample) -> Iterator[tuple[str, str]]:
            if level == "pixels":
                yield check_pixels(expected, decoders, example)
            if metadata:
                yield from metadata(example)

        def check(shard: Shard) -> ShardCheck:
            if alone and _is_walked(shard, level):
                return workers.verify(shard, expected, level, progress)
            looks = level == "pixels" or metadata
            return verify_shard(shard, expected, level, check_images if looks else unchecked, progress)

        checks = tuple(pool.map(check, dataset.shards))
    findings = [finding for each in checks for finding in each.findings]
    findings += metadata.conclude() if metadata else ()
    if not dataset.features:
        findings += _compare_kinds(checks)
    if level != "frames" and dataset.whole:
        if marker := dataset.marker:
            findings += [*check_marker(dataset, marker, checks), *check_side_files(dataset, marker)]
        findings += [
            *_find_missing(dataset),
            *_find_strangers(dataset),
            *_find_duplicates(checks, marker.unit if marker else "image"),
        ]
    return Verification(dataset, level, checks, tuple(findings))


def _is_walked(shard: Shard, level: Level) -> bool:
    """Whether a process pays off: for local files whose records are checked one by one, without decoding images."""
    return storage.is_local(shard.path) and (level == "frames" or (level == "files" and not shard.sha256))


def _compare_kinds(checks: tuple[ShardCheck, ...]) -> Iterator[Finding]:
    """Features whose kind in one file differs from earlier files."""
    first: dict[str, tuple[str, str]] = {}
    for check in checks:
        for key, (kind, record) in check.kinds.items():
            known, shard = first.setdefault(key, (kind, check.shard.name))
            if known != kind:
                detail = f"feature {key} is {kind} here and {known} in {shard}"
                yield Finding("feature", detail, check.shard.name, record)


def _find_missing(dataset: Dataset) -> Iterator[Finding]:
    """Shards that are missing according to the numbers in other shards' names."""
    if dataset.kind != "files":
        return
    sets: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))  # by pattern, then by the count in it
    for shard in dataset.shards:
        if match := SHARD_NUMBER.search(shard.name):
            sets[SHARD_NUMBER.sub("*", shard.name)][int(match["count"])].add(int(match["number"]))
    for stem, numbers in sets.items():
        count = max(numbers)
        there = numbers[count]
        first = 0 if 0 in there else 1
        for number in sorted(set(range(first, first + count)) - there)[:_SHOWN_DUPLICATES]:
            yield Finding("missing", f"shard {number} of {count} is missing", stem)
        for other in sorted(numbers.keys() - {count}):
            detail = f"{len(numbers[other])} files of a set of {other} are next to the set of {count}"
            yield Finding("stale", f"{detail}: readers that use a glob read both", stem)


def _find_strangers(dataset: Dataset) -> Iterator[Finding]:
    """Files that look like shards or sidecars and that the dataset does not list."""
    if dataset.kind == "files":
        return
    listed = {shard.name for shard in dataset.shards}
    for shard in find_shards(dataset.folder):
        if shard.name not in listed and not _is_in_a_dataset(dataset.folder, shard.name):
            detail = "the dataset does not list this file: readers that use a glob read it too"
            yield Finding("stale", detail, shard.name)
    if dataset.marker:
        sidecars = storage.join(dataset.folder, SIDECARS)
        known = {shard.sidecar for shard in dataset.shards}
        known |= {storage.join(dataset.folder, name) for name in dataset.marker.files}
        for name in storage.folder_names(sidecars):
            if storage.join(sidecars, name) not in known:
                yield Finding("stale", "the dataset does not list this file among its sidecars", f"{SIDECARS}/{name}")


def _is_in_a_dataset(folder: str, name: str) -> bool:
    """Whether a file is in a subfolder that is a dataset of its own."""
    parts = name.split("/")[:-1]
    return any(storage.exists(storage.join(folder, *parts[: end + 1], MARKER)) for end in range(len(parts)))


def _find_duplicates(checks: tuple[ShardCheck, ...], unit: str) -> Iterator[Finding]:
    """Sources of the same bytes in several splits."""
    places: dict[str, list[tuple[ShardCheck, str]]] = defaultdict(list)
    seen = Counter(digest for check in checks for digest in check.keys_by_digest)
    for check in checks:
        for digest, key in check.keys_by_digest.items():
            if seen[digest] > 1:
                places[digest].append((check, key))
    crossing = [found for found in places.values() if len({check.shard.split for check, _ in found}) > 1]
    for found in crossing[:_SHOWN_DUPLICATES]:
        places_of = " and ".join(f"{key} in {check.shard.split}" for check, key in found)
        yield Finding("duplicate", f"one {unit} in several splits: {places_of}", found[0][0].shard.name)
    if len(crossing) > _SHOWN_DUPLICATES:
        yield Finding("duplicate", f"{len(crossing) - _SHOWN_DUPLICATES:,} further {unit}s are in several splits")
