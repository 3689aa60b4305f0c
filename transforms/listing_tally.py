"""Counts what a part of an input has while it is listed, and gives images their new classes."""

import posixpath
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from recordmill.schemas.image_ref import ImageRef, Listed
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.claims import Claims
from recordmill.transforms.inputs.likely_splits import may_name_any_image, name_split_folder
from recordmill.transforms.inputs.listed_pairs import ListedImages
from recordmill.transforms.inputs.other_splits import contradicts_folder
from recordmill.transforms.inputs.shard_sets import ShardTally
from recordmill.transforms.inputs.unclaimed_files import UnclaimedFiles


@dataclass(slots=True)
class Tally:
    """Facts about one part of an input, from which `conclude` judges the whole input.

    Attributes:
        first_folders: the first folders of its files.
        naming_files: files that name images.
        exists: whether anything was found.
        fault: why it cannot be read; None if it can.
        is_folder: whether the input is a folder, not one file.
        shards: what it says about sets of files.
        unclaimed: files that the source does not claim.
        images: images that the source takes, whatever the others are.
        other_splits: images whose folder is named like another split than theirs.
        named_in: images that files name and give no split, by the folder named like one.
        renamed: the source's names of classes of images that have new names.
    """

    first_folders: set[str] = field(default_factory=set)
    naming_files: int = 0
    exists: bool = False
    fault: str | None = None
    is_folder: bool = True
    shards: ShardTally = field(default_factory=ShardTally)
    unclaimed: UnclaimedFiles = field(default_factory=UnclaimedFiles)
    images: ListedImages = field(default_factory=ListedImages)
    other_splits: int = 0
    named_in: Counter[str | None] = field(default_factory=Counter)
    renamed: set[str] = field(default_factory=set)


def count_splits(
    listed: Generator[Listed, None, bool],
    file: ImageRef,
    root: str,
    claims: Claims,
    tally: Tally,
) -> Generator[Listed, None, bool]:
    """Counts images in folders that are named like splits, and yields all that is listed."""
    settings = claims.settings
    is_unsplit = not settings.from_source and not settings.from_folders
    counts_named = is_unsplit and may_name_any_image(claims.source)
    if not settings.from_source and not counts_named:
        return listed

    def count(each: Listed) -> Listed:
        if type(each) is ImageRef and settings.from_source and contradicts_folder(each):
            tally.other_splits += 1
        if type(each) is ImageRef and counts_named and each.uri != file.uri:
            tally.named_in[name_split_folder(root, posixpath.dirname(each.uri))] += 1
        return each

    return _change_each(listed, count)


def rename_labels(
    listed: Generator[Listed, None, bool], settings: ListingSettings, tally: Tally
) -> Generator[Listed, None, bool]:
    """Gives images the new names of their classes, before these count for limits and splits.

    Images whose class is dropped keep its name: they are left out when they are converted.
    """
    if not settings.rename:
        return listed

    def rename(each: Listed) -> Listed:
        if not isinstance(each, ImageRef) or each.label not in settings.rename:
            return each
        tally.renamed.add(each.label)
        return each.replace(label=settings.rename[each.label] or each.label)

    return _change_each(listed, rename)


def _change_each(
    listed: Generator[Listed, None, bool], change: Callable[[Listed], Listed]
) -> Generator[Listed, None, bool]:
    """Yields what `change` makes of each listed thing; returns what `listed` does."""
    while True:
        try:
            each = next(listed)
        except StopIteration as end:
            return bool(end.value)
        yield change(each)
