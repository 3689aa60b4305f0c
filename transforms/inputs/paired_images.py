"""Finds the second images of pairs by patterns: what the paths of an image and of its pair share.

In a pattern, each name in braces stands for a part of the path without slashes, the same in the
paths of a pair: `A/{name}.jpg` and `B/{name}.png`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import re2

from recordmill.annotations.pairs import PairedImages
from recordmill.schemas.errors import SettingError
from recordmill.schemas.image_ref import ImageRef, SourceFile
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.named_files import DataFile, find_named_file, key_of
from recordmill.transforms.inputs.patterns import check_template

PAIRS_OF = "source.pairs_of"

_PAIR_NAME = re.compile(r"[A-Za-z0-9_-]+")
_PART = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class PathPattern:
    """The paths of images, with names in braces for the parts that differ.

    Attributes:
        text: the pattern.
        names: the names in it, in their order; one may be there several times.
        letters: how many letters are not in braces.
    """

    text: str
    names: tuple[str, ...]
    letters: int

    @classmethod
    def of(cls, text: str) -> "PathPattern":
        """Reads a pattern."""
        return cls(text, tuple(_PART.findall(text)), len(_PART.sub("", text)))

    @staticmethod
    def strip_names(text: str) -> str:
        """Returns a pattern without the names in braces."""
        return _PART.sub("", text)

    def find_parts(self, path: str) -> Mapping[str, str] | None:
        """Returns the part of a path for each name; None if the path does not match."""
        match = _compile(self.text).fullmatch(path)
        if match is None:
            return None
        parts = dict(zip(self.names, match.groups(), strict=True))
        is_whole = self.fill(parts) == path  # a name that is there twice has one part
        return parts if is_whole else None

    def fill(self, parts: Mapping[str, str]) -> str:
        """Returns the path with these parts."""
        return self.text.format_map(parts)


@cache
def _compile(text: str) -> Any:
    pieces = _PART.split(text)
    literals = [re2.escape(piece) for piece in pieces[0::2]]
    return re2.compile("([^/]+)".join(literals))


def check_pairs(pairs_of: str, pairs: Mapping[str, str]) -> None:
    """Checks the patterns of images and of their second images.

    Raises:
        SettingError: a name or a pattern is impossible, or one of the two settings is missing.
    """
    check_pair_names(pairs)
    if not pairs:
        return
    if not pairs_of:
        first = next(iter(pairs.values()))
        raise SettingError(
            "source.pairs",
            f"needs the paths of the images whose pairs match {first!r}: set {PAIRS_OF}, such as "
            "A/{name}.jpg next to B/{name}.jpg",
        )
    names = PathPattern.of(pairs_of).names
    check_template(pairs_of, PAIRS_OF, *names)
    if not names or len({*names}) < len(names):
        raise SettingError(
            PAIRS_OF, f"is {pairs_of!r}: it has each name in braces once, such as A/{{name}}.jpg"
        )
    for name, pattern in pairs.items():
        check_template(pattern, f"source.pairs.{name}", *names)
        if not PathPattern.of(pattern).names:
            raise SettingError(
                f"source.pairs.{name}",
                f"is {pattern!r}: write what differs as in {PAIRS_OF}, such as {{{names[0]}}}",
            )
        if pattern == pairs_of:
            raise SettingError(f"source.pairs.{name}", f"is the same as {PAIRS_OF}: correct one")


def check_pair_names(pairs: Iterable[str]) -> None:
    """Checks the names of second images.

    Raises:
        SettingError: one cannot be a part of a feature's name.
    """
    for name in pairs:
        if not _PAIR_NAME.fullmatch(name):
            raise SettingError(
                "source.pairs",
                f"has the name {name!r}: use letters, digits, - and _ (it is a part of the "
                "feature's name)",
            )


@dataclass(frozen=True, slots=True)
class PairPatterns:
    """The patterns of images and of their second images.

    Attributes:
        pairs_of: of the images.
        pairs: of the second images, by name.
    """

    pairs_of: PathPattern
    pairs: Mapping[str, PathPattern]

    @classmethod
    def of(cls, pairs_of: str, pairs: Mapping[str, str]) -> "PairPatterns":
        """Reads patterns that `check_pairs` accepts."""
        read = {name: PathPattern.of(text) for name, text in pairs.items()}
        return cls(PathPattern.of(pairs_of), read)

    def add_pairs(self, path: str, file: ImageRef) -> ImageRef:
        """Adds its second images to an image.

        Args:
            path: the image's path below the input, as `Source.list_references` receives it.
            file: a reference to it.

        Returns:
            The reference; or the notice that the file is a second image itself. If a path matches
            several patterns, the one with the most letters outside braces counts.

        Raises:
            Rejected: `name_mismatch`: it matches no pattern.
        """
        patterns = [self.pairs_of, *self.pairs.values()]
        for pattern in sorted(patterns, key=lambda each: -each.letters):
            parts = pattern.find_parts(path)
            if parts is None:
                continue
            if pattern is not self.pairs_of:
                return file.notice("ignored", "second_image")
            image = DataFile(path, file)
            found = {name: self._find(image, name, parts) for name in self.pairs}
            files = tuple(sorted({*found.values()}))
            keys = {name: each.key for name, each in found.items()}
            packed = (PairedImages.kind, PairedImages(keys).pack())
            return file.replace(annotations=(*file.annotations, packed), files=files)
        why = f"the path matches neither {PAIRS_OF} nor source.pairs"
        raise Rejected("list", "name_mismatch", why)

    def _find(self, image: DataFile, name: str, parts: Mapping[str, str]) -> SourceFile:
        """Returns a second image; it may be missing.

        Args:
            image: the first image.
            name: the name of the second image.
            parts: the parts of the image's path.
        """
        # The store may spell the path in NFD.
        spelled = self.pairs_of.find_parts(image.spelled) or parts
        path = self.pairs[name].fill(spelled)
        key = key_of(image.ref.key, image.path, path)
        # The folder may have the same name as the input.
        whole = f"{image.root.rstrip('/')}/{path}"
        return find_named_file(image.root, whole, key, f"source.pairs.{name}")
