"""The files beside the shards of one of ours: whether they are as they were written, and name the same classes."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest

from recordmill import storage
from recordmill.reading.dataset import Dataset
from recordmill.reading.verify.finding import Finding
from recordmill.schemas.dataset.file_names import LABELS, REPORT
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.label_map import LabelMap, tfds_names
from recordmill.storage.many_files import digests_of

FOR_PEOPLE = frozenset({"README.md", "croissant.json", REPORT})
"""Files that people complete by hand (a licence, a citation), and that no reader of records needs."""

_AT_ONCE = 16


def check_side_files(dataset: Dataset, marker: Marker) -> Iterator[Finding]:
    """What is wrong with the files that the marker lists beside the shards, in its order; first those that are missing.

    A list of classes that contradicts the marker's labels is told by its first other line, any other file by its
    digest, where the marker states one (`run.digests`).
    """
    there = []
    for name in marker.files:
        if storage.size_of(storage.join(dataset.folder, name)) is None:
            yield Finding("missing", "the file is not there", name)
        else:
            there.append(name)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from (found for found in pool.map(lambda name: _check(dataset, marker, name), there) if found)


def _check(dataset: Dataset, marker: Marker, name: str) -> Finding | None:
    path = storage.join(dataset.folder, name)
    stated = (marker.run.digests or {}).get(name)
    try:
        if (forms := _label_maps(name, dataset.labels)) and (problem := _compare(storage.read_range(path), forms)):
            return Finding("names", problem, name)
        if stated is None or digests_of([path]) == [stated]:
            return None
    except OSError as error:
        return Finding("unreadable", f"the file cannot be read: {(error.strerror or str(error)).lower()}", name)
    if name in FOR_PEOPLE:
        changed = "the file has been changed since the dataset was made, as people do to complete it"
        return Finding("edited", changed, name)
    changed = "the file's sha256 is not as stated: it has been changed since the dataset was made, or damaged"
    return Finding("sha256", changed, name)


def _label_maps(name: str, labels: Mapping[str, int]) -> list[str]:
    """What a file that lists the classes may hold; empty for files that do not."""
    label_map = LabelMap(dict(labels))
    if name == LABELS:
        return [label_map.as_text("id:name"), label_map.as_text("name")]
    if name == "label_map.pbtxt":
        return [label_map.as_pbtxt()]
    if name.endswith(f".{LABELS}"):
        return ["".join(f"{each}\n" for each in tfds_names(labels))]
    return []


def _compare(content: bytes, forms: list[str]) -> str:
    """The first line that is not in the form that fits best; the empty string where one fits."""
    text = content.decode("utf-8", "replace")
    if text in forms:
        return ""
    lines = text.removesuffix("\n").split("\n") if text else []
    pairs = [list(zip_longest(lines, form.removesuffix("\n").split("\n") if form else [])) for form in forms]
    best = max(pairs, key=lambda form: sum(there == stated for there, stated in form))
    number, (there, stated) = next((item for item in enumerate(best, 1) if item[1][0] != item[1][1]), (0, ("", "")))
    if not number:
        return "the last line does not end"
    is_there = "is not there" if there is None else f"is {there!r:.80}"
    says = "nothing more" if stated is None else f"{stated!r:.80}"
    return f"line {number} {is_there} and recordmill.json says {says}"
