"""Labels in file names such as `img_00017_3.jpg`, read by a pattern with named groups."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized
from recordmill.transforms.inputs.patterns import compile_pattern
from recordmill.transforms.inputs.sources.source import Source

_LABELED = (
    (r".*_(?P<label>-?[0-9]+)\.[^_]*", True),
    (r"(?P<label>[^0-9]*[^-0-9._ ])[-._ ]*[0-9]+\.[^.]*", False),
)
"""Patterns of names with labels, and whether the labels are numbers: `img_00017_3.jpg`,
`cat.12.jpg`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilenameLabels(Source):
    r"""The source `filename_labels`.

    Attributes:
        pattern: a regular expression (RE2's syntax, which never backtracks) that a file's base name
            must match as a whole. Its group `label` is the label; images with the same text in a
            group named `group`, if any, stay in one split. Default: the integer between the last
            underscore and the first dot after it, as in `img_00017_3.jpg`.
        features_from: additional features from named groups, as `{feature key: group name}`, stored
            as UTF-8 bytes.
    """

    pattern: str = r".*_(?P<label>-?[0-9]+)\.[^_]*"
    features_from: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ValueError if the pattern is invalid, or lacks a needed group."""
        self._compiled()

    def _compiled(self) -> Any:
        return compile_pattern(
            self.pattern, "source.pattern", "label", *self.features_from.values()
        )

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes images in one folder whose names give several images one label."""
        images = sketch.top.images
        for pattern, ids in _LABELED:
            matches = [re.fullmatch(pattern, name) for name in images]
            labels = {match["label"] for match in matches if match}
            if images and all(matches) and 1 < len(labels) <= len(images) / 2:
                given = {} if pattern == cls().pattern else {"pattern": pattern}
                settings: dict[str, Any] = {"source": {"kind": "filename_labels", **given}}
                why = f"labels such as {min(labels)} in the images' names"
                yield Recognized(
                    {**settings, **({"labels": {"ids": "integers"}} if ids else {})},
                    why,
                    is_firm=False,
                )
                return

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
        features = orjson.dumps(values).decode() if values else ""
        yield file.replace(
            label=groups["label"], group=groups.get("group") or "", features=features
        )

    def features(self) -> tuple[Feature, ...]:
        """The features in `features_from`."""
        return tuple(
            Feature(key, "bytes", key, f"group `{group}` of the file's name", default=b"")
            for key, group in self.features_from.items()
        )


SOURCE = FilenameLabels
