"""Summarises a dataset (splits, features, labels, sizes) by its marker, or by reading every record once."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from recordmill.reading.dataset import Dataset, Shard
from recordmill.reading.example import Profile, expect, parse_intact
from recordmill.schemas.dataset.marker import Marker
from recordmill.storage.tfrecord_file import Damage, RecordFile, StoredFile

_MOST_LABELS = 100_000


@dataclass(frozen=True, slots=True)
class FeatureSummary:
    """One feature.

    Attributes:
        kind: `bytes`, `float`, `int64`; several joined by `or` if records differ; `empty` if no list is set.
        shape: `[]` for one value, `[4]` for always four, `[0..7]` for a range, `[?]` if the records were not read.
        records: number of records that have it; None if the records were not read.
        meaning: one line, if known.
    """

    kind: str
    shape: str
    records: int | None
    meaning: str = ""


@dataclass(slots=True)
class SplitSummary:
    """One split.

    Attributes:
        files: number of files.
        records: number of intact records.
        bytes: size of its files.
        damages: number of places where a frame or an Example was expected and not found.
        smallest: size of the smallest record in bytes; None if the records were not read, or there are none.
        largest: size of the largest record in bytes; None in the same cases.
        labels: records by label: class names, or ids as text.
    """

    files: int = 0
    records: int = 0
    bytes: int = 0
    damages: int = 0
    smallest: int | None = None
    largest: int | None = None
    labels: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Summary:
    """The content of a dataset.

    Attributes:
        dataset: the dataset.
        splits: by name.
        features: by key, sorted.
        scanned: whether every record was read; otherwise the summary is the marker's.
        unreadable: listed files that cannot be read.
    """

    dataset: Dataset
    splits: dict[str, SplitSummary]
    features: dict[str, FeatureSummary]
    scanned: bool
    unreadable: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        fingerprint = self.dataset.marker.fingerprint if self.dataset.marker else None
        return {
            "path": self.dataset.folder,
            "kind": self.dataset.kind,
            "convention": self.dataset.marker.convention if self.dataset.marker else "",
            "fingerprint": fingerprint.dataset if fingerprint else "",
            "scanned": self.scanned,
            "splits": {name: asdict(split) for name, split in self.splits.items()},
            "features": {key: asdict(feature) for key, feature in self.features.items()},
            "labels": dict(self.dataset.labels),
            "unreadable": list(self.unreadable),
        }


def summarize_dataset(
    dataset: Dataset, scan: bool = False, progress: Callable[[int], None] = lambda records: None
) -> Summary:
    """Summarises a dataset.

    Args:
        dataset: of any kind.
        scan: reads every record even if the marker has everything.
        progress: called repeatedly with the number of records since the last call.
    """
    if dataset.marker and dataset.whole and not scan:
        return _read_marker(dataset, dataset.marker)
    label_keys = expect(dataset).label_keys
    splits = {name: SplitSummary(len(shards)) for name, shards in dataset.splits.items()}
    profiles: Counter[Profile] = Counter()
    unreadable = []
    for shard in dataset.shards:
        try:
            _scan_shard(shard, splits[shard.split], profiles, label_keys, progress)
        except OSError:
            unreadable.append(shard.name)
    names = {str(label_id): name for name, label_id in dataset.labels.items()}
    for split in splits.values():
        split.labels = {names.get(label, label): count for label, count in sorted(split.labels.items())}
    meanings = {feature.key: feature.meaning for feature in dataset.features}
    return Summary(dataset, splits, _describe(profiles, meanings), True, tuple(unreadable))


def _read_marker(dataset: Dataset, marker: Marker) -> Summary:
    splits = {}
    for name, stated in marker.splits.items():
        labels = {label: count for label, count in stated.class_counts.items() if label}
        splits[name] = SplitSummary(len(stated.shards), stated.records, stated.bytes, labels=labels)
    features = {
        feature.key: FeatureSummary(feature.kind, "[?]" if feature.many else "[]", None, feature.meaning)
        for feature in sorted(dataset.features, key=lambda feature: feature.key)
    }
    return Summary(dataset, splits, features, False)


def _scan_shard(
    shard: Shard,
    split: SplitSummary,
    profiles: Counter[Profile],
    label_keys: tuple[str, ...],
    progress: Callable[[int], None],
) -> None:
    with StoredFile(shard.path) as stored:
        split.bytes += stored.size
        for number, (_, data) in enumerate(RecordFile(stored), start=1):
            if not number % 256:
                progress(256)
            if isinstance(data, Damage) or (example := parse_intact(data)) is None:
                split.damages += 1
                continue
            split.records += 1
            split.smallest = min(split.smallest or len(data), len(data))
            split.largest = max(split.largest or 0, len(data))
            profiles[example.profile] += 1
            labels = next(filter(None, map(example.values, label_keys)), ())
            for label in labels:
                text = label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label)
                if text in split.labels or len(split.labels) < _MOST_LABELS:
                    split.labels[text] = split.labels.get(text, 0) + 1


def _describe(profiles: Counter[Profile], meanings: dict[str, str]) -> dict[str, FeatureSummary]:
    """Features by key, from the records' profiles."""
    kinds: dict[str, Counter[str]] = {}
    counts: dict[str, list[int]] = {}
    for profile, times in profiles.items():
        for key, kind, values in profile:
            kinds.setdefault(key, Counter())[kind or "empty"] += times
            counts.setdefault(key, []).append(values)
    features = {}
    for key in sorted(kinds):
        fewest, most = min(counts[key]), max(counts[key])
        shape = f"[{fewest}..{most}]" if fewest < most else "[]" if most == 1 else f"[{most}]"
        named = " or ".join(name for name, _ in kinds[key].most_common())
        features[key] = FeatureSummary(named, shape, kinds[key].total(), meanings.get(key, ""))
    return features
