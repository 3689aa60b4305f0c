"""Samples as WebDataset stores them: consecutive members that differ only in their extension.

The extension follows the first dot of the base name: `000/07.seg.png` is the part `seg.png` of `000/07` (webdataset's
`base_plus_ext`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, ClassVar

import orjson

from recordmill.schemas.features import Kind
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.archives.members import Member
from recordmill.transforms.inputs.listing.class_names import LONGEST_NAME
from recordmill.transforms.inputs.manifests.columns import FeatureFrom, feature_value

MAX_PART_BYTES = 2**20
"""The longest label, caption or JSON that is read."""

bad_sample = partial(Rejected, "list", "bad_sample")
"""A file next to an image cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFeature(FeatureFrom):
    """An additional feature from a member next to an image: the YAML keys below its name, with those of `FeatureFrom`.

    Attributes:
        part: the extension of a text file, such as `txt`; or `json.KEY` for the value of a key in the `.json`.
    """

    part: str

    where: ClassVar[str] = "part"
    hint: ClassVar[str] = "give an extension such as txt, or json.KEY"
    described: ClassVar[str] = "`{}` beside the image"  # part of plan ids: these words stay

    def value_of(self, value: Any) -> Any:
        """The feature's value or values.

        Raises:
            Rejected: it is of another type, or missing.
        """
        if self.many:
            if not isinstance(value, list | None):
                raise bad_sample(f"{self.part} is not a list")
            return [_convert(each, self.type, self.part) for each in value or ()]
        if value is None:
            if self.default is None:
                raise bad_sample(f"{self.part} is missing")
            return self.default_value()
        return _convert(value, self.type, self.part)


def _convert(value: Any, kind: Kind, part: str) -> Any:
    """A value as stored in references, by the rules for cells of manifests; but captions may hold any character."""
    if kind == "bytes" and isinstance(value, str):
        return value
    try:
        return feature_value(value, kind, part)
    except Rejected:
        raise bad_sample(f"{part}: {value!r:.60} is not {'text' if kind == 'bytes' else f'of type {kind}'}") from None


@dataclass(slots=True)
class Sample:
    """An image and the members next to it.

    Attributes:
        name: the members' common name.
        parts: members by extension.
        image: the extension of the image; empty if there is none.
        may_lack: whether the archive cannot be read after these members, and further parts may be lost.
    """

    name: str
    parts: dict[str, Member]
    image: str = ""
    may_lack: bool = False


def value_of(part: str, contents: Mapping[str, bytes]) -> Any:
    """The value of a part: a file's text without surrounding white space, or a value in `.json`; None if missing.

    Args:
        part: as in `PartFeature.part`.
        contents: the contents of the members that are needed, by extension.

    Raises:
        Rejected: it is not UTF-8, or not JSON.
    """
    extension, _, key = part.partition(".") if part.startswith("json.") else (part, "", "")
    if extension not in contents:
        return None
    if key:
        return _parse(contents[extension]).get(key)
    try:
        return contents[extension].decode().strip()
    except UnicodeDecodeError:
        raise bad_sample(f"{extension} is not UTF-8") from None


def class_of(label: Any, part: str, names: Sequence[str]) -> str:
    """The class for a label next to an image.

    Args:
        label: a name, or a number.
        part: the part that contains it, for messages.
        names: the classes' names, if labels are numbers from 0; empty: the label itself is the name.

    Raises:
        Rejected: it is missing, is neither text nor integer, or has no class.
    """
    if label is None or label == "":
        raise bad_sample(f"{part} is missing or empty")
    if isinstance(label, str) and len(label) > LONGEST_NAME:
        raise bad_sample(f"{part} has {len(label):,} characters, but a name has at most {LONGEST_NAME:,}")
    if not names and isinstance(label, int | str) and not isinstance(label, bool):
        return str(label)
    number = _convert(label, "int64", part)
    if not 0 <= number < len(names):
        raise bad_sample(f"{part} is {label}, where source.class_names has {len(names)} classes, from 0")
    return names[number]


def extensions_of(parts: Iterable[str]) -> frozenset[str]:
    """The extensions of the files that contain these parts."""
    return frozenset("json" if part.startswith("json.") else part for part in parts if part)


def group_samples(members: Iterable[Member], image_parts: tuple[str, ...]) -> Iterator[Sample]:
    """Groups the members of an archive into samples; each member is a part of one.

    Args:
        members: in the archive's order.
        image_parts: extensions of images; the first that a sample has is used.

    Raises:
        Rejected: as `members`, after the sample before it.
    """
    damage: list[Rejected] = []
    for name, together in groupby(_until_damage(members, damage), key=lambda member: _split(member.name)[0]):
        parts = {_split(member.name)[1]: member for member in together}
        yield Sample(name, parts, next((each for each in image_parts if each in parts), ""), bool(damage))
    if damage:
        raise damage[0]


def _until_damage(members: Iterable[Member], damage: list[Rejected]) -> Iterator[Member]:
    try:
        yield from members
    except Rejected as error:
        damage.append(error)


def _split(name: str) -> tuple[str, str]:
    folder, slash, base = name.rpartition("/")
    stem, _, extension = base.partition(".")
    return folder + slash + stem, extension.lower()


def _parse(data: bytes) -> Mapping[str, Any]:
    try:
        parsed = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise bad_sample(f"json cannot be read: {error}") from None
    if not isinstance(parsed, dict):
        raise bad_sample("json is not an object")
    return parsed
