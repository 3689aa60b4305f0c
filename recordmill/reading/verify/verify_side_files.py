"""Checks that a dataset's companion files are unchanged, and name the same classes."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from recordmill import storage
from recordmill.reading.dataset import Dataset
from recordmill.reading.verify.finding import Finding
from recordmill.schemas.dataset.file_names import FOR_PEOPLE, LABELS
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.label_map import LabelMap, tfds_names
from recordmill.storage.many_files import digest_of
from recordmill.storage.stores.store import in_parallel


def check_side_files(dataset: Dataset, marker: Marker) -> Iterator[Finding]:
    """Yields the problems of the marker's companion files: first the missing ones, then the others, in its order.

    A list of classes that contradicts the marker's labels is reported with its first differing line, any other file by
    its digest, if the marker has one (`run.digests`).
    """
    there = []
    for name in marker.files:
        if storage.size_of(storage.join(dataset.folder, name)) is None:
            yield Finding("missing", "the file is missing", name)
        else:
            there.append(name)
    yield from filter(None, in_parallel(lambda name: _check(dataset, marker, name), there))


def _check(dataset: Dataset, marker: Marker, name: str) -> Finding | None:
    path = storage.join(dataset.folder, name)
    digest = (marker.run.digests or {}).get(name)
    try:
        if (forms := _label_maps(name, dataset.labels)) and (problem := _compare(storage.read_range(path), forms)):
            return Finding("names", problem, name)
        if digest is None or digest_of(path) == digest:
            return None
    except OSError as error:
        return Finding("unreadable", f"the file cannot be read: {(error.strerror or str(error)).lower()}", name)
    if name in FOR_PEOPLE:
        changed = "the file was edited after the dataset was made"
        return Finding("edited", changed, name)
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
