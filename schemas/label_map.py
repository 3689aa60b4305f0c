"""The label map: class names to ids, the same on every run that lists the same classes."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Literal

from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import INT64_MAX, INT64_MIN
from recordmill.schemas.idle_settings import IdleIf, Situation, without_labels
from recordmill.schemas.rejection import LeftOut, Rejected
from recordmill.schemas.setting_fields import ClassId

MOST_TFDS_NAMES = 65_536
"""Class ids below this number have names in TFDS; with larger ids, labels are plain integers
there."""


def _without_ids(_: "LabelSettings", now: Situation) -> str | None:
    return None if now.stores_ids else f"the convention ({now.convention}) stores no class ids"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSettings:
    """How classes get their ids: the YAML keys under `labels:`.

    Attributes:
        classes: the class names in the order of their ids; empty: the names found, sorted by code
            point.
        offset: the id of the first class; by default the convention's (0, or 1 if readers keep 0
            for background).
        catch_all: the class for labels that `classes` does not list; by default, such images are
            rejected.
        ids: `names` numbers the classes in order; `integers` takes the label, or the source's
            number of its class, as the id; `raised`: like `integers`, shifted up if a class would
            get the reserved id 0.
        rename: new names of classes by the source's names, before ids are given:
            `{automobile: car, van: car}`. `null` drops a class: its images are left out, and its
            annotations are dropped (`renamed_away`). The other settings take the new names.
    """

    classes: Annotated[tuple[str, ...], IdleIf(without_labels)] = ()
    offset: Annotated[ClassId | None, IdleIf(_without_ids), IdleIf(without_labels)] = None
    catch_all: Annotated[str | None, IdleIf(without_labels)] = None
    ids: Annotated[Literal["names", "integers", "raised"], IdleIf(without_labels)] = "names"
    rename: Annotated[Mapping[str, str | None], IdleIf(without_labels)] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        """Raises SettingError if the settings contradict each other."""
        repeated = sorted({name for name in self.classes if self.classes.count(name) > 1})
        if repeated:
            raise SettingError(
                "labels.classes", f"lists {repeated[0]!r} twice: each class has one id"
            )
        if self.catch_all is not None and self.catch_all not in self.classes:
            raise SettingError(
                "labels.catch_all",
                f"is {self.catch_all!r}, which labels.classes does not list: add it there",
            )
        if self.ids != "names" and (self.classes or self.offset is not None):
            raise SettingError(
                "labels.ids",
                f": {self.ids} takes each label as its id: set labels.ids to names, or remove "
                "labels.classes and labels.offset",
            )
        self._check_new_names()

    def _check_new_names(self) -> None:
        """Raises SettingError if a new name is impossible, or if a renamed class is named."""
        for old, new in self.rename.items():
            if new == "":
                raise SettingError(
                    f"labels.rename.{old}", "is empty: write null to drop the class, or a name"
                )
            if new in self.rename:
                raise SettingError(
                    f"labels.rename.{old}",
                    f"is {new!r}, which labels.rename renames, too: give each class its last name",
                )
        renamed = [name for name in self.classes if name in self.rename]
        if renamed:
            raise SettingError(
                "labels.classes",
                f"lists {renamed[0]!r}, which labels.rename renames: list new names only",
            )


@dataclass(frozen=True)
class LabelMap:
    """Class ids by name.

    Attributes:
        ids: by class name.
        catch_all: the class for unlisted labels; None if there is none.
        numbers: the source's own numbers of its classes.
        is_chosen: whether the user has listed the classes, so that other labels are left out on
            purpose.
        renamed: new names by the source's names; None for a class that is dropped.
        attributes: the ids of the words of each attribute of objects that is stored, by its name;
            empty if its values are truth values and whole numbers.
        parts: the names of the parts of annotations by their kind: those of all images together,
            in the order of Examples.
    """

    ids: dict[str, int]
    catch_all: str | None = None
    numbers: Mapping[str, int] = field(default_factory=dict)
    is_chosen: bool = False
    renamed: Mapping[str, str | None] = field(default_factory=dict)
    attributes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def _names(self) -> dict[int, str]:
        return {number: name for name, number in self.numbers.items()}

    def name_for(self, label: str | int) -> str | None:
        """Returns the class for a label, or for the number that the source gives a class.

        It is None if there is no class for it.
        """
        name = self._listed_name(label)
        if name is not None:
            name = self.renamed.get(name, name)
        if name is None or name in self.ids:
            return name
        return self.catch_all

    def _listed_name(self, label: str | int) -> str | None:
        """Returns the source's name of a label; None for a number that has no name."""
        if isinstance(label, int):
            return self._names.get(label)
        return label

    def is_renamed_away(self, label: str | int) -> bool:
        """Returns whether `labels.rename` drops a label."""
        name = self._listed_name(label)
        return name is not None and self.renamed.get(name, name) is None

    def shown(self, label: str | int) -> str:
        """Returns the name of a label for people, or its number if it has no name.

        It is the new name, but the source's name of a class that is dropped.
        """
        name = self._listed_name(label)
        if name is None:
            return str(label)
        return self.renamed.get(name) or name

    def leaves_out(self, label: str | int) -> bool:
        """Returns whether a label without an id is left out on purpose.

        Numbers cannot be chosen if the source does not name them.
        """
        if self.is_renamed_away(label):
            return True
        return self.is_chosen and (isinstance(label, str) or bool(self.numbers))

    def as_text(self, line: Literal["id:name", "name"] = "id:name") -> str:
        r"""Returns the map as `labels.txt`, in the order of the ids.

        Lines are `id:name`, as slim has them, or names alone. A line break in a name is written
        `\n`, so that one line is one class; `recordmill.json` has the exact names.
        """
        lines = sorted((label_id, name) for name, label_id in self.ids.items())
        prefix = "{}:" if line == "id:name" else ""
        return "".join(f"{prefix.format(label_id)}{one_line(name)}\n" for label_id, name in lines)

    def as_pbtxt(self) -> str:
        """Returns the map as the Object Detection API's `StringIntLabelMap`, ordered by id.

        It is in protobuf's text form.
        """
        items = sorted((label_id, name) for name, label_id in self.ids.items())
        return "".join(
            f"item {{\n  id: {label_id}\n  name: {quoted(name)}\n}}\n" for label_id, name in items
        )


def find_class(label: str | int, label_map: LabelMap) -> tuple[str | None, int | None]:
    """Returns the class name and id of an image's label; (None, None) for an image without a label.

    Args:
        label: a class name, or the number that the source gave the class.
        label_map: class ids.

    Raises:
        Rejected: stage `encode`, `unknown_label`: the label map has no place for it.
        LeftOut: `renamed_away`: `labels.rename` drops it.
    """
    if label == "":
        return None, None
    name = label_map.name_for(label)
    if name is not None:
        return name, label_map.ids[name]
    if label_map.is_renamed_away(label):
        raise LeftOut("renamed_away", f"the label {label_map.shown(label)!r:.200}")
    raise Rejected("encode", "unknown_label", f"the label {label!r:.200} is not one of the classes")


def build_label_map(
    found: Iterable[str],
    settings: LabelSettings,
    offset: int,
    numbers: Mapping[str, int] | None = None,
    used: Collection[str | int] = (),
) -> LabelMap:
    """Builds the label map from the labels found.

    An explicit list decides the ids, whatever was found. If the source numbers its classes, they
    are in the order of its numbers, and other labels have no id. Otherwise, the names found are
    sorted by code point, never by frequency, so that more images of the same classes change no id.
    New names count in place of the source's; of several numbers of one class, the lowest counts.

    Args:
        found: the labels of the listed references; the empty label (unlabeled) has no id.
        settings: how classes get their ids.
        offset: the id of the first class.
        numbers: the source's own numbers of its classes, if it has any.
        used: the labels that images or their annotations have, by name or by the source's number.
    """
    numbers, renamed = numbers or {}, settings.rename
    found = rename_classes(found, renamed)
    if settings.ids != "names":
        ids = number_renamed(numbers, renamed) or _number_integers(found)
        label_map = LabelMap(ids, None, numbers, renamed=renamed)
        if settings.ids == "raised":
            used_names = {label_map.name_for(label) for label in used}
            used_ids = [number for name, number in ids.items() if name in used_names]
            label_map = replace(label_map, ids=_raise_ids(ids, used_ids, offset))
        return label_map
    numbered = number_renamed(numbers, renamed)
    names = settings.classes or sorted(numbered, key=numbered.__getitem__) or sorted(found - {""})
    ids = {name: offset + index for index, name in enumerate(names)}
    return LabelMap(ids, settings.catch_all, numbers, bool(settings.classes), renamed)


def rename_classes(names: Iterable[str], renamed: Mapping[str, str | None]) -> set[str]:
    """Returns the names of classes after renaming, without those that are dropped."""
    new_names = {renamed.get(name, name) for name in names}
    return {name for name in new_names if name is not None}


def number_renamed(numbers: Mapping[str, int], renamed: Mapping[str, str | None]) -> dict[str, int]:
    """Returns the source's numbers of its classes by their new names."""
    numbered: dict[str, int] = {}
    for old, number in numbers.items():
        name = renamed.get(old, old)
        if name is not None:
            numbered[name] = min(number, numbered.get(name, number))
    return numbered


def _number_integers(labels: Iterable[str]) -> dict[str, int]:
    """Maps labels that are integers to them.

    Of `2` and `2.0`, only the first has an id, because both would have the same.
    """
    numbers = {label: number for label in labels if (number := integer_of(label)) is not None}
    plain = {label: number for label, number in sorted(numbers.items()) if "." not in label}
    taken = set(plain.values())
    others = {
        label: number
        for label, number in sorted(numbers.items(), reverse=True)
        if "." in label and number not in taken
    }
    shortest = {number: label for label, number in others.items()}  # of 2.0 and 2.00
    return dict(sorted({**plain, **{label: number for number, label in shortest.items()}}.items()))


def _raise_ids(ids: dict[str, int], used: Collection[int], first: int) -> dict[str, int]:
    """Adds one number to all ids so that those in use begin at `first` or above.

    The number is 0 if they do already, or if an id would overflow.
    """
    more = max(0, first - min(used, default=first))
    fits = max(ids.values(), default=0) + more <= INT64_MAX
    if fits:
        return {name: number + more for name, number in ids.items()}
    return ids


def is_integer_label(label: str) -> bool:
    """Returns whether a label's text is a decimal 64-bit integer (`3`, `-1`, `007`)."""
    digits = label[1:] if label.startswith("-") else label
    return (
        digits.isascii()
        and digits.isdigit()
        and len(digits) < 40
        and INT64_MIN <= int(label) <= INT64_MAX
    )


def integer_of(label: str) -> int | None:
    """Returns the integer that a label is, also one with a decimal point and zeros (`2.0`).

    Else None.

    pandas writes such labels for a column of integers that has a gap.
    """
    whole, point, zeros = label.partition(".")
    is_whole = not point or (zeros != "" and zeros.strip("0") == "")
    if is_whole and is_integer_label(whole):
        return int(whole)
    return None


def quoted(text: str) -> str:
    """Returns a string of protobuf's text form: bytes outside printable ASCII as octal escapes."""
    plain = {ord('"'): '\\"', ord("\\"): "\\\\"}
    return (
        '"'
        + "".join(plain.get(b, chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in text.encode())
        + '"'
    )


def one_line(name: str) -> str:
    r"""Escapes line breaks in a class name as `\n` and `\r`, and doubles backslashes."""
    return name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def tfds_names(labels: Mapping[str, int]) -> list[str]:
    """Returns a name for each id from 0 to the last.

    All names are different, on one line each, without spaces around them. Ids without a class are
    called `background` (0, if classes are counted from 1) or `unused_<id>`. The list is empty if
    ids are negative or too large to be listed.
    """
    if not labels or min(labels.values()) < 0 or max(labels.values()) >= MOST_TFDS_NAMES:
        return []
    by_id = {label_id: name for name, label_id in sorted(labels.items(), reverse=True)}
    spare = {0: "background"} if min(by_id) == 1 else {}
    names: dict[str, None] = {}
    taken = {one_line(name).strip() for name in by_id.values()}
    for label_id in range(max(by_id) + 1):
        if label_id in by_id:
            name = one_line(by_id[label_id]).strip()
        else:
            name = spare.get(label_id, f"unused_{label_id}")
        while not name or name in names or (label_id not in by_id and name in taken):
            name = f"{name}_{label_id}"
        names[name] = None
    return list(names)
