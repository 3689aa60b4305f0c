"""WebDataset's samples: members of an archive that differ only in their extension.

The extension follows the first dot of the base name: `000/07.seg.png` is the part `seg.png` of
`000/07` (webdataset's `base_plus_ext`).
"""

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.archive_members import Member
from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.image_suffixes import IMAGE_ENDINGS

MASK_PARTS = frozenset({".seg.png", ".mask.png", ".segmentation.png", ".label.png", ".gt.png"})
"""The usual ends of the names of semantic masks in samples."""


def suggest_mask_part(patterns: Sequence[str]) -> Mapping[str, Any] | None:
    """Returns the settings that store second images as semantic masks; None if they are none.

    Args:
        patterns: the patterns of the second images' names.
    """
    if len(patterns) != 1 or patterns[0].removeprefix("*") not in MASK_PARTS:
        return None
    source = {"kind": "archives", "labels": "beside", "label_part": ""}
    source["mask_part"] = patterns[0].removeprefix("*.")
    return {"source": source, "convention": "deeplab"}


def split_part(name: str) -> tuple[str, str]:
    """Returns the name of a member's sample, and which part of it the member is."""
    folder, slash, base = name.rpartition("/")
    stem, _, extension = base.partition(".")
    return folder + slash + stem, extension.lower()


def group_samples(members: Iterable[Member]) -> Iterator[dict[str, Member]]:
    """Yields the samples of an archive: consecutive members with one name, by extension.

    Raises:
        Rejected: as `members` does. The sample before is yielded if it has all parts that others
            have had, so that it is known to be whole.
    """
    name, sample = "", dict[str, Member]()
    known_parts: set[str] = set()
    try:
        for member in members:
            own, part = split_part(member.name)
            if sample and own != name:
                known_parts |= sample.keys()
                yield sample
                sample = {}
            name = own
            sample[part] = member
    except Rejected:
        if known_parts and sample.keys() >= known_parts:
            yield sample
        raise
    if sample:
        yield sample


def is_image_part(part: str) -> bool:
    """Returns whether a part has the extension of an image, such as `jpg` and `seg.png`."""
    return f".{part}".endswith(IMAGE_ENDINGS)


_FEWEST_SAMPLES = 3
"""The fewest images with two parts each that are samples."""


@dataclass(frozen=True)
class SampleSketch:
    """The samples in a sketch of an archive, as far as it was seen.

    Attributes:
        parts: the parts of each sample that has an image.
        folders: the folders of these samples; the empty string is the archive itself.
    """

    parts: Sequence[frozenset[str]]
    folders: frozenset[str]

    @classmethod
    def of(cls, inside: FolderSketch) -> "SampleSketch":
        """Finds the samples in an archive."""
        samples: dict[str, set[str]] = defaultdict(set)
        for folder, names in inside.names.items():
            for name in names.files:
                sample, part = split_part(posixpath.join(folder, name))
                samples[sample].add(part)
        found = {
            sample: frozenset(parts)
            for sample, parts in sorted(samples.items())
            if any(map(is_image_part, parts))
        }
        folders = frozenset(sample.rpartition("/")[0] for sample in found)
        return cls(tuple(found.values()), folders)

    def has(self, part: str) -> bool:
        """Returns whether a sample has this part."""
        return any(part in parts for parts in self.parts)

    @cached_property
    def images(self) -> frozenset[frozenset[str]]:
        """The images of samples with a label, as sets of parts."""
        return frozenset(
            frozenset(filter(is_image_part, parts)) for parts in self.parts if "cls" in parts
        )

    def find_several(self, usual: Sequence[str]) -> list[str]:
        """Returns the parts of samples that all have the same images, several under unusual names.

        Empty if the samples have a label, or are others. Numbers after a dot count images.
        """
        images = {frozenset(filter(is_image_part, parts)) for parts in self.parts}
        parts = next(iter(images), frozenset())
        is_unusual = parts.isdisjoint(usual) and not any(part[:1].isdigit() for part in parts)
        is_several = len(images) == 1 and len(parts) > 1 and len(self.parts) >= _FEWEST_SAMPLES
        return sorted(parts) if is_several and is_unusual else []

    def image_parts(self, usual: Sequence[str]) -> list[str]:
        """Returns the parts to take as images; empty: the usual ones are enough.

        Raises:
            SeveralImagesError: a sample has several images, and none of them has a usual name.
        """
        if (parts := self.find_several(usual)) and not self.images:
            raise SeveralImagesError(parts)
        unusual = [images for images in self.images if images.isdisjoint(usual)]
        if several := [images for images in unusual if len(images) > 1]:
            raise SeveralImagesError(sorted(min(several, key=sorted)))
        own = sorted(chain.from_iterable(unusual))
        there = {*chain.from_iterable(self.images)}
        return [*(part for part in usual if part in there), *own] if own else []


class SeveralImagesError(Exception):
    """Samples have several images, whose parts are the exception's argument."""
