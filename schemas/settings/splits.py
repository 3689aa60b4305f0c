"""The settings under `splits:`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

SPLIT_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
    "eval": "eval",
    "holdout": "holdout",
}
"""Words, in lower case, that mean a split rather than a class, in the order of splits; and the split's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSettings:
    """How images are split: the YAML keys under `splits:`.

    Attributes:
        fractions: share of the images by split name, e.g. `{train: 0.8, validation: 0.1, test: 0.1}`; the remainder to
            1 is left out of the dataset. A hash of the key decides, so images added later do not move others.
        stratify: gives each class those shares exactly (to one image, or to the largest group), by rank of the hashes
            within the class; growth may move images at the boundaries.
        group: a regular expression (RE2's syntax) with a group `(?P<group>...)`, searched in each key: images whose
            keys have the same text in it stay in one split, e.g. all images of one patient.
        from_folders: the first folder below the input gives the split: `{train: train, val: validation}`.
        from_source: the source gives the split (a manifest's column, a file's name): `{TRAIN: train, TEST: test}`.
            Without it, the source's splits are not used.
    """

    fractions: Mapping[str, float] = field(default_factory=lambda: {"train": 0.9, "test": 0.1})
    stratify: bool = False
    group: str | None = None
    from_folders: Mapping[str, str] = field(default_factory=dict)
    from_source: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ValueError where the settings are impossible or contradict each other."""
        for name in (*self.fractions, *self.given.values()):
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
                raise ValueError(
                    f"splits: {name!r} cannot be a split's name: use letters, digits, - and _ (it names files)"
                )
        for name, fraction in self.fractions.items():
            if not 0 < fraction <= 1:
                raise ValueError(f"splits.fractions.{name} is {fraction:g}: give a share above 0 and at most 1")
        if sum(self.fractions.values()) > 1 + 1e-9:
            total = f"{sum(self.fractions.values()):.6g}"
            raise ValueError(f"splits.fractions sum to {total}, which is over 1: lower them")
        if self.from_folders and self.from_source:
            raise ValueError("splits.from_folders and splits.from_source contradict each other: remove one of them")
        if self.stratify and self.given:
            other = "splits.from_folders" if self.from_folders else "splits.from_source"
            raise ValueError(f"splits.stratify and {other} contradict each other: remove one of them")
        if not self.fractions and not self.given:
            raise ValueError("splits.fractions names no split: give at least one, such as {train: 1.0}")

    @property
    def given(self) -> Mapping[str, str]:
        """The mapping from folders' or the source's words to split names, if splits are given; otherwise empty."""
        return self.from_folders or self.from_source

    @property
    def names(self) -> tuple[str, ...]:
        """The configured splits, in the order in which they were written."""
        return tuple(dict.fromkeys(self.given.values())) or tuple(self.fractions)
