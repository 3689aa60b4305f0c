"""What pairs of images are, as found by their names and looks."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Pairs:
    """What second images are, and where.

    Attributes:
        why: the end of a sentence: what looks like pairs.
        kept: the folders of the first images, by path below the input.
        left_out: the folders of the second images.
        patterns: patterns of the second images, if they are in the same folders.
        choices: what may be kept instead, if nothing tells which image of a folder is the first
            one; each with the patterns of the others.
        is_even: whether nothing says which folder is the first one.
        are_sides: whether the folders are the two sides of splits: `trainA`, `trainB`.
        may_be_classes: whether the folders may be classes all the same.
        may_be_single: whether all images may be of things of their own.
        class_from: where the classes of the first images are, if folders hold one of them each.
        count: how many second images there are.
    """

    why: str
    kept: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()
    is_even: bool = False
    are_sides: bool = False
    may_be_classes: bool = False
    may_be_single: bool = False
    class_from: Literal["first_folder", "none"] | None = None
    count: int = 0
