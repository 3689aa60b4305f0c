"""Measures how much sooner a store is listed if its parts are listed side by side.

    python -m benchmarks.listing --check

A page of 1,000 names takes 0.2 s. The store is a stub in memory whose pages take that long. The
same input is listed as `gs://` is, and as one part, by turns. Most of the time is waiting, so the
ratio of seconds by the clock means something on a busy machine, too.
"""

import time
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import BinaryIO

from apache_beam.io.filesystem import FileMetadata
from rich.table import Table

from benchmarks import measure
from benchmarks.measure import BenchmarkError, spread
from recordmill import storage
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.settings.source import Input, ListingSettings
from recordmill.storage.stores.store import Store
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.list_images import list_images

PAGE, PAGE_SECONDS = 1_000, 0.2
BUCKET = "gs://bucket/photographs/"
LEAST = 4.0
"""How many times as fast 100 folders must be listed."""

INPUTS = {"100 folders": (100, 1_000), "2,000 folders": (2_000, 25), "one folder": (1, 50_000)}
"""Folders, and images in each."""


class SlowPages(Store):
    """A store that answers late.

    The names below a folder are a range of all names, in their order.
    """

    def __init__(self, names: list[str], starts_anywhere: bool) -> None:
        self.names_in_order = sorted(names)
        self.starts_anywhere = starts_anywhere  # type: ignore[misc]

    def _from(self, prefix: str, start: str = "") -> Iterator[str]:
        at = bisect_left(self.names_in_order, prefix + start)
        names = iter(self.names_in_order[at:])
        while True:
            time.sleep(PAGE_SECONDS)
            page = list(islice(names, PAGE))
            found = [name for name in page if name.startswith(prefix)]
            yield from found
            if len(found) < PAGE:
                return

    def list_below(self, prefix: str, start: str = "") -> Iterator[FileMetadata]:
        """All objects, page by page."""
        return (FileMetadata(name, 5, 1.5) for name in self._from(prefix, start))

    def names(self, prefix: str) -> Iterator[str]:
        """Folders and objects of one level, which are few enough for a page or two."""
        below = (
            name[len(prefix) :].partition("/")
            for name in self.names_in_order
            if name.startswith(prefix)
        )
        for number, entry in enumerate(dict.fromkeys(first + slash for first, slash, _ in below)):
            if number % PAGE == 0:
                time.sleep(PAGE_SECONDS)
            yield entry

    def describe(self, uri: str) -> None:
        """There is no object with the name of the input."""

    def read(self, uri: str, offset: int, length: int) -> bytes:
        """Listing reads nothing."""
        raise NotImplementedError

    def open_to_write(self, uri: str) -> BinaryIO:
        """Listing writes nothing."""
        raise NotImplementedError

    def delete(self, uris: list[str]) -> None:
        """Listing deletes nothing."""
        raise NotImplementedError


def seconds_to_list(names: list[str], starts_anywhere: bool) -> float:
    """Seconds by the clock to list all names.

    Raises:
        BenchmarkError: some were missed, or found twice.
    """
    store = SlowPages(names, starts_anywhere)
    storage._find_store = lambda _: store  # type: ignore[assignment]
    began = time.perf_counter()
    found = [
        ref.key
        for ref in list_images(Input(BUCKET.rstrip("/")), ClassFolders(), ListingSettings())
        if isinstance(ref, ImageRef)
    ]
    seconds = time.perf_counter() - began
    if sorted(found) != [name.removeprefix(BUCKET) for name in store.names_in_order]:
        raise BenchmarkError(f"{len(found)} references for {len(names)} names")
    return seconds


def main() -> None:
    """Lists each input in both ways."""
    parser = measure.options(__doc__)
    parser.add_argument("--pairs", type=int, default=3, help="rounds (%(default)s)")
    arguments = parser.parse_args()
    result, misses = {}, []
    shown = Table(
        "", "images", "one part, s", "side by side, s", "times as fast", title="a page takes 0.2 s"
    )
    for what, (folders, images) in INPUTS.items():
        names = [
            f"{BUCKET}{folder:05}/{image:06}.jpg"
            for folder in range(folders)
            for image in range(images)
        ]
        ways = {
            "one": partial(seconds_to_list, names, False),
            "side_by_side": partial(seconds_to_list, names, True),
        }
        took = measure.alternate(ways, arguments.pairs)
        ratio = spread(
            one / many for one, many in zip(took["one"], took["side_by_side"], strict=True)
        )
        result[what] = {**{way: spread(each) for way, each in took.items()}, "times_as_fast": ratio}
        medians = (result[what][key]["median"] for key in ("one", "side_by_side", "times_as_fast"))
        shown.add_row(what, f"{folders * images:,}", *(f"{median:.1f}" for median in medians))
    measure.console.print(shown)
    if (median := result["100 folders"]["times_as_fast"]["median"]) < LEAST:
        misses.append(
            f"100 folders are listed {median:.1f} times as fast, the target is {LEAST:.1f}"
        )
    measure.finish(
        {"machine": measure.machine(), "load": measure.load(), "inputs": result},
        misses,
        arguments.check,
    )


if __name__ == "__main__":
    main()
