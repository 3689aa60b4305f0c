"""Labels that come with their images, as numbers or names: the class of each, and which numbers there are."""

from collections.abc import Iterator, Mapping, Sequence

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.inputs.sources.source import announce_classes


def name_labels(labels: Sequence[int] | Sequence[str], classes: Mapping[str, int]) -> tuple[list[str], set[int]]:
    """The class of each label.

    Args:
        labels: numbers or names.
        classes: numbers by class name; empty where each number is a class of its own, called as it is written.

    Returns:
        The classes' names, where an unknown number stays a number without a class;
        and the numbers that are classes of their own.
    """
    names = {number: name for name, number in classes.items()}
    numbers = {label for label in set(labels) if isinstance(label, int)}
    written = {number: names.get(number) or str(number) for number in numbers}
    return [written[label] if isinstance(label, int) else label for label in labels], set() if classes else numbers


def announce_numbers(file: ImageRef, numbers: set[int]) -> Iterator[ImageRef]:
    """What a source yields so that classes called 0, 1, ..., 10 have that order; nothing where there are none such."""
    if numbers:
        yield announce_classes(file, {str(number): number for number in sorted(numbers)})
