"""Labels that come beside their images, as numbers or names: the class of each, and which numbers there are."""

from collections.abc import Iterator, Mapping, Sequence

from recordmill.schemas.image_ref import ClassNames, ImageRef


def name_labels(labels: Sequence[int] | Sequence[str], classes: Mapping[str, int]) -> tuple[list[str], set[int]]:
    """The class of each label.

    Args:
        labels: numbers or names.
        classes: numbers by class name; empty where each number is a class of its own, called as it is written.

    Returns:
        The classes' names, in which a number that is none of the classes' stays a number, for which there is no class;
        and the numbers that are classes of their own.
    """
    names = {number: name for name, number in classes.items()}
    numbers = {label for label in set(labels) if isinstance(label, int)}
    written = {number: names.get(number) or str(number) for number in numbers}
    return [written[label] if isinstance(label, int) else label for label in labels], set() if classes else numbers


def announce_numbers(file: ImageRef, numbers: set[int]) -> Iterator[ClassNames]:
    """What a source yields so that classes called 0, 1, ..., 10 have that order; nothing where there are none such."""
    if numbers:
        yield ClassNames.of(file, {str(number): number for number in sorted(numbers)})
