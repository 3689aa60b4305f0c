"""Labels in file names such as `img_00017_3.jpg`, read by a pattern with named groups."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import ImageRef, Listed, pack_fields
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.folder_sketch import (
    FolderSketch,
    Recognized,
    split_for_word,
)
from recordmill.transforms.inputs.pair_names import is_about_pairs, split_word_of
from recordmill.transforms.inputs.patterns import compile_pattern, escape_glob
from recordmill.transforms.inputs.sources.source import Source

_NUMBERS = r".*_(?P<label>-?[0-9]+)\.[^_]*"
_WORDS = r"(?P<label>[^0-9]*[^-0-9._ ])[-._ ]*[0-9]+\.[^.]*"
_WORDS_OF_MANY = r"(?P<label>[^0-9]*[^-0-9._ (])[-._ (]*[0-9][-0-9._ ()]*\.[^.]*"
_AFTER_NUMBER = r"[-0-9._ ]*[0-9][-._ ]+(?P<label>[^0-9]*[^-0-9._ ])\.[^.]*"
_AFTER_NUMBERED = rf"\D+{_AFTER_NUMBER}"
"""Patterns of names with labels: `img_00017_3.jpg`, `cat.12.jpg`, `cat_12 (3).jpg`,
`000_happy.jpg`, `case_12_benign.jpg`.
"""

_DATE = re.compile(r"(?<![0-9])(19|20)[0-9]{2}([-_. ]?)(0[1-9]|1[0-2])\2([0-2][0-9]|3[01])")

_NO_LABELS = frozenset(
    {
        *("img", "imgp", "imag", "image", "images", "dsc", "dscn", "dscf", "pxl", "mvimg", "dji"),
        *("gopr", "gp", "gx", "gh", "pict", "cimg", "sdc", "hpim", "kif", "mg", "sam", "wp"),
        *("photo", "pic", "picture", "screenshot", "screen", "capture", "snapshot", "scan", "vid"),
        *("mov", "video", "frame", "file", "foto", "pano", "burst", "page", "sample", "example"),
        *("whatsapp", "signal", "received", "fb", "thumb", "cover", "tile", "patch", "crop"),
        *(
            "left",
            "right",
            "front",
            "back",
            "top",
            "bottom",
            "day",
            "week",
            "cam",
            "camera",
            "view",
        ),
        *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "sept", "oct", "nov"),
        *("dec", "january", "february", "march", "april", "june", "july", "august", "september"),
        *("october", "november", "december", "mon", "tue", "wed", "thu", "fri", "sat", "sun"),
        *("batch", "part", "seq", "run", "set", "item", "id", "no", "num", "number", "untitled"),
    }
)
"""Words at the beginning of names that cameras, counters and dates write, in lower case."""

_NO_LABELS_AFTER = frozenset(
    {
        *("copy", "edited", "edit", "hdr", "small", "large", "medium", "final", "flip", "flipped"),
        *(
            "rotated",
            "rot",
            "aug",
            "augmented",
            "resized",
            "mirrored",
            "mirror",
            "bw",
            "gray",
            "raw",
        ),
        *("color", "cropped", "enhanced", "burst", "bokeh", "portrait", "night", "cover", "raw"),
    }
)
"""Words at the end of names that tools and cameras write, in lower case."""

_LEAST_FILES = 5
_LEAST_SHARE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class FilenameLabels(Source):
    r"""The source `filename_labels`.

    Attributes:
        pattern: a regular expression (RE2) for a file's whole base name. Its group `label` is the
            label; images with the same text in a group `group` stay in one split. Default: the
            integer between the last underscore and the first dot after it.
        features_from: additional features from named groups, as `{feature name: group name}`.
    """

    pattern: str = r".*_(?P<label>-?[0-9]+)\.[^_]*"
    features_from: Mapping[str, str] = field(default_factory=dict)

    takes_all_images: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raises ValueError if the pattern is invalid, or lacks a needed group."""
        self._compiled()

    def _compiled(self) -> Any:
        return compile_pattern(
            self.pattern, "source.pattern", "label", *self.features_from.values()
        )

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes images in one folder, or in those of splits, whose names have labels."""
        folders = _find_flat_folders(sketch)
        found = {each: _find_labels(sketch.at(each).images) for each in folders}
        labeled = [each for each in folders if found[each][0]]
        if not labeled or len({found[each][0] for each in labeled}) > 1:
            return
        pattern, _, ids = found[labeled[0]]
        labels = set[str]().union(*(found[each][1] for each in labeled))
        given = {} if pattern == cls().pattern else {"pattern": pattern}
        settings: dict[str, Any] = {"source": {"kind": "filename_labels", **given}}
        if splits := {each: split_word_of(each) for each in labeled if each in sketch.top.folders}:
            if all(splits.values()):
                settings["splits"] = {"from_folders": splits}
            if others := [f"/{escape_glob(each)}/" for each in folders if each not in labeled]:
                settings["ignore"] = others
        why = f"labels such as {min(labels)} in the images' names"
        more = {"labels": {"ids": "integers"}} if ids else {}
        yield Recognized({**settings, **more}, why, is_firm=False)

    @property
    def remedies(self) -> Mapping[str, str]:
        """For names that do not match."""
        return {"name_mismatch": f"correct source.pattern, which is {self.pattern}"}

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields one image per file; rejects names that do not match."""
        match = self._compiled().fullmatch(path.rpartition("/")[2])
        if not match or not match["label"]:
            raise Rejected("list", "name_mismatch", "the file's name does not match source.pattern")
        groups = match.groupdict()
        values = {key: groups[group] or "" for key, group in self.features_from.items()}
        yield file.replace(
            label=groups["label"], group=groups.get("group") or "", features=pack_fields(values)
        )

    def features(self) -> tuple[Feature, ...]:
        """Returns the features in `features_from`."""
        return tuple(
            Feature(key, "bytes", key, f"group `{group}` of the file's name", default=b"")
            for key, group in self.features_from.items()
        )


def _find_flat_folders(sketch: FolderSketch) -> list[str]:
    """Returns the only folder of images, or those of splits.

    Returns the empty string is the input itself.
    """
    holding = [folder for folder in sketch.top.folders if sketch.holds_images(folder)]
    if sketch.top.images:
        return [""] if not holding else []
    are_splits = all(map(split_word_of, holding))
    return holding if len(holding) == 1 or are_splits else []


def _find_labels(names: Sequence[str]) -> tuple[str, set[str], bool]:
    """Returns the pattern of labels in names, the labels, and whether they are numbers.

    The pattern is empty if there are none: cameras, counters, hashes and dates give no labels.
    """
    if any(map(_DATE.search, names[:_LEAST_FILES])):
        return "", set(), False
    for pattern in (_NUMBERS, _WORDS):
        matches = [re.fullmatch(pattern, name) for name in names]
        labels = {match["label"] for match in matches if match}
        if pattern == _NUMBERS:  # of cat_1 and dog_1, the words are the labels
            others = {name.rpartition("_")[0] for name in names}
            is_said = len(others) >= len(labels)
        else:
            is_said = not any(map(_is_no_label, labels))
        if names and all(matches) and is_said and 1 < len(labels) <= len(names) / 2:
            return pattern, labels, pattern == _NUMBERS
    for pattern, is_no_label in (
        (_WORDS_OF_MANY, _is_no_label),
        (_AFTER_NUMBER, _is_no_label_after),
        (_AFTER_NUMBERED, _is_no_label_after),
    ):
        matches = [re.fullmatch(pattern, name) for name in names]
        if pattern == _AFTER_NUMBERED and not _are_of_one_thing_each(matches):
            continue
        found = [match["label"] for match in matches if match]
        counts = Counter(found)
        labels = {
            label
            for label, count in counts.items()
            if count >= _LEAST_FILES and not is_no_label(label)
        }
        share = sum(counts[label] for label in labels)
        if len(labels) > 1 and share >= _LEAST_SHARE * len(names):
            is_plain = sum(1 for name in names if re.fullmatch(_WORDS, name)) == len(found)
            return _WORDS if is_plain else pattern, labels, False
    return "", set(), False


def _are_of_one_thing_each(matches: Iterable[re.Match[str] | None]) -> bool:
    """Returns whether no name is there with several labels, as the views of one thing are."""
    others = [match.string[: match.start("label")] for match in matches if match]
    return len({*others}) == len(others)


def _is_no_label_after(text: str) -> bool:
    """Returns whether the end of a name is written by a tool or a camera, or is that of a mask."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    is_known = any(word in _NO_LABELS_AFTER or is_about_pairs(word) for word in words)
    return is_known or _is_no_label(text)


def _is_no_label(text: str) -> bool:
    """Whether the beginning of a name is a camera's, a counter's, a split's, or of a hash."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    is_short = len(text) < 2
    return (
        is_short or not words or any(word in _NO_LABELS or split_for_word(word) for word in words)
    )


SOURCE = FilenameLabels
