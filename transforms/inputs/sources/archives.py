"""Images in tar, tar.gz and zip archives; classes come from folders or from files next to images.

The archives stay packed.

Samples are those of WebDataset: consecutive members that differ only in their extension; see
`archive_samples`.
"""

import posixpath
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Annotated, Any, ClassVar, Literal

import orjson
from annotated_types import Interval

from recordmill.annotations.annotation import pack_annotations
from recordmill.annotations.segmentation import Segmentation
from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import FeatureKind
from recordmill.schemas.image_ref import (
    Content,
    ImageRef,
    Listed,
    Notice,
    SourceFile,
    pack_fields,
)
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.setting_fields import AtLeastOne
from recordmill.schemas.settings.source import ListingSettings
from recordmill.storage.packed_files import MAX_RATIO, read_image
from recordmill.transforms.inputs.archive_members import (
    Limits,
    Member,
    UnknownNamesError,
    bad_archive,
    list_members,
)
from recordmill.transforms.inputs.archive_samples import MASK_PARTS, group_samples
from recordmill.transforms.inputs.class_names import LONGEST_NAME, why_unread
from recordmill.transforms.inputs.file_groups import has_digit, tells_of_all
from recordmill.transforms.inputs.file_roles import (
    FileRole,
    is_description_name,
    is_other_name,
    role_of_name,
)
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized
from recordmill.transforms.inputs.image_suffixes import is_image_name
from recordmill.transforms.inputs.mask_classes import read_mask_classes
from recordmill.transforms.inputs.member_names import check_encoding
from recordmill.transforms.inputs.named_files import DataFile
from recordmill.transforms.inputs.patterns import compile_pattern, find_split_word, why_ignored
from recordmill.transforms.inputs.recognize_archives import (
    name_of_archive,
    recognize_archives,
)
from recordmill.transforms.inputs.sources.class_folders import folder_label
from recordmill.transforms.inputs.sources.source import Source
from recordmill.transforms.inputs.tables.manifest_columns import FeatureFrom, feature_value
from recordmill.transforms.inputs.unclaimed_files import Unclaimed

MAX_PART_BYTES = 2**20
"""The longest label, caption or JSON that is read."""

bad_sample = partial(Rejected, "list", "bad_sample")
"""A file next to an image cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFeature(FeatureFrom):
    """An additional feature from a member next to an image.

    The YAML keys below its name are these attributes and those of `FeatureFrom`.

    Attributes:
        part: the extension of a text file, such as `txt`; or `json.KEY` for the value of a key in
            the `.json`.
    """

    part: str

    where: ClassVar[str] = "part"
    described: ClassVar[str] = "`{}` beside the image"  # part of plan ids: these words stay

    def value_of(self, value: Any) -> Any:
        """Returns the feature's value or values.

        Raises:
            Rejected: it is of another type, or missing.
        """
        if self.many:
            if not isinstance(value, list | None):
                raise bad_sample(f"{self.part} is not a list")
            return [_convert(each, self.type, self.part) for each in value or ()]
        if value is None and self.default is None:
            raise bad_sample(f"{self.part} is missing")
        return self.default_value() if value is None else _convert(value, self.type, self.part)


def _convert(value: Any, kind: FeatureKind, part: str) -> Any:
    """Converts a value to the form in references, by the rules for cells of manifests.

    But captions may contain any character.
    """
    if kind == "bytes" and isinstance(value, str):
        return value
    try:
        return feature_value(value, kind, part)
    except Rejected:
        raise bad_sample(
            f"{part}: {value!r:.60} is not {'text' if kind == 'bytes' else f'of type {kind}'}"
        ) from None


def value_in_part(part: str, contents: Mapping[str, bytes]) -> Any:
    """Returns the value of a part, or None if it is missing.

    The value is a file's text without surrounding white space, or a value in `.json`.

    Args:
        part: as in `PartFeature.part`.
        contents: the contents of the members that are needed, by extension.

    Raises:
        Rejected: it is not UTF-8, or not JSON.
    """
    is_json = part.startswith("json.")
    extension = "json" if is_json else part
    if extension not in contents:
        return None
    try:
        text = contents[extension].decode().strip()
        value: Any = orjson.loads(text) if is_json else text
    except ValueError as error:
        raise bad_sample(f"{extension} cannot be read: {why_unread(error)}") from None
    if is_json and not isinstance(value, dict):
        raise bad_sample("json is not an object")
    return value.get(part.removeprefix("json.")) if is_json else value


def class_of(label: Any, part: str, names: Sequence[str]) -> str:
    """Returns the class for a label next to an image.

    Args:
        label: a name, or a number.
        part: the part that contains it, for messages.
        names: the classes' names, if labels are numbers from 0; empty: the label itself is the
            name.

    Raises:
        Rejected: it is missing, is neither text nor integer, or has no class.
    """
    if label is None or label == "":
        raise bad_sample(f"{part} is missing or empty")
    if isinstance(label, str) and len(label) > LONGEST_NAME:
        raise bad_sample(
            f"{part} has {len(label):,} characters, but a name has at most {LONGEST_NAME:,}"
        )
    if not names and isinstance(label, int | str) and not isinstance(label, bool):
        return str(label)
    number = _convert(label, "int64", part)
    if not 0 <= number < len(names):
        raise bad_sample(
            f"{part} is {label}, where source.class_names has {len(names)} classes, from 0"
        )
    return names[number]


_LABEL_FILES = "labels in .cls files"

_USUAL_PARTS = ("cls", "json", "txt")
"""Parts of samples that writers of WebDataset use for labels and captions."""


def _explain_lack(detail: str, path: str) -> str:
    """Returns a sentence about a sample without a part: another member may be between them."""
    if path.lower().endswith(".zip"):  # its members are sorted
        return detail
    return f"{detail}; the order matters: the members of a sample must follow one another"


def _json_parts(texts: Mapping[str, bytes]) -> set[str]:
    """Returns the parts `json.KEY` of the `.json` that was read; none if it is malformed."""
    try:
        values = orjson.loads(texts.get("json", b"{}"))
    except ValueError:  # reported where a value is read
        return set()
    return {f"json.{key}" for key in values} if isinstance(values, dict) else set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Archives(Source):
    """The source `archives`.

    Attributes:
        labels: where classes come from: `folders` in the archive, or `beside`: files next to an
            image that share its name, as in WebDataset.
        class_from: the folder of `a/b/image.jpg` in the archive that names the class:
            `first_folder` (a), `last_folder` (b) or `path` (a/b); `archive`: the archive's name;
            `none`: no labels.
        strip_folders: the number of outer folders that are not part of the class.
        label_part: with `beside`, the extension of the label's file, or `json.KEY`; empty: no
            label.
        class_names: with `beside`, the names of numbered classes; empty: labels are names, or ids
            with `labels.ids: integers`.
        image_parts: with `beside`, the extensions of images; the first that a sample has is used.
        mask_part: with `beside`, the extension of the semantic mask, such as `seg.png`. An image
            without one is rejected. Empty: there are none.
        mask_colors: for semantic masks of colors: a table below the input with a line `R G B name`
            per class, or a JSON object of a color per name. The first class has the id 0.
        mask_threshold: for semantic masks of two levels, such as 0 and 255: the smallest value of
            the class 1; others are 0. By default, values are ids.
        features_from: with `beside`, additional features: `{image/caption: {part: txt}}`, `{score:
            {part: json.score, type: float}}`; `many` for lists, `default` for missing values.
        split: a regular expression (RE2) searched for in `archive.tar/path/of/member.jpg`; its
            group `split` is the word for `splits.from_source`.
        members: patterns (gitignore's syntax) of the members to read; empty: all.
        names_encoding: the encoding of names that are not marked as UTF-8, such as `cp866`, `gbk`
            or `shift_jis`; empty: UTF-8, if Unix or macOS made the archive.
        max_member_bytes: larger members are rejected.
        max_ratio: zip members that unpack to more than this many times their size are rejected, and
            a packed tar is not unpacked further.
        max_members: the most members that are read from one archive.
    """

    labels: Literal["folders", "beside"] = "folders"
    class_from: Literal["first_folder", "last_folder", "path", "archive", "none"] = "first_folder"
    strip_folders: Annotated[int, Interval(ge=0)] = 0
    label_part: str = "cls"
    class_names: tuple[str, ...] = ()
    image_parts: tuple[str, ...] = (
        "jpg",
        "jpeg",
        "png",
        "webp",
        "gif",
        "bmp",
        "tif",
        "tiff",
        "ppm",
    )
    mask_part: str = ""
    mask_colors: str = ""
    mask_threshold: AtLeastOne | None = None
    features_from: Mapping[str, PartFeature] = field(default_factory=dict)
    split: str = ""
    members: tuple[str, ...] = ()
    names_encoding: str = ""
    max_member_bytes: AtLeastOne = 256 * 2**20
    max_ratio: AtLeastOne = MAX_RATIO
    max_members: AtLeastOne = 10_000_000

    files: ClassVar[tuple[str, ...]] = ("*.tar", "*.tar.gz", "*.tgz", "*.zip")
    split_settings: ClassVar[tuple[str, ...]] = ("split",)
    reads_sets: ClassVar[bool] = True
    takes_all_images: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raises SettingError if a setting is invalid."""
        if self.split:
            compile_pattern(self.split, "source.split", "split")
        check_encoding(self.names_encoding)
        if self.features_from and self.labels != "beside":
            raise SettingError("source.features_from", "needs `source.labels: beside`")
        for key, feature in self.features_from.items():
            feature.check(key)
        self.classes()

    @property
    def gives_labels(self) -> bool:
        """Whether the settings name a place for labels."""
        if self.labels == "beside":
            return self.label_part != ""
        return self.class_from != "none"

    @property
    def text_part(self) -> str | None:
        """The extension of the members whose texts are classes; None if there are none."""
        if self.labels != "beside" or self.class_names:
            return None
        return self.label_part

    def idle_settings(self) -> Mapping[str, str]:
        """Returns the settings for the other value of `labels`, and those of masks without use."""
        idle = dict[str, str]()
        if not self.mask_part:
            idle = dict.fromkeys(("mask_colors", "mask_threshold"), "source.mask_part is not set")
        elif self.mask_colors:
            idle["mask_threshold"] = "source.mask_colors is set"
        if self.labels == "beside":
            others = dict.fromkeys(("class_from", "strip_folders"), "source.labels is `beside`")
            return idle | others
        others = dict.fromkeys(
            ("label_part", "class_names", "image_parts", "mask_part"), "source.labels is folders"
        )
        return idle | others

    def annotations(self) -> Mapping[str, str]:
        """Returns that images have a semantic mask if a setting names its part."""
        return {"segmentation": "source.mask_part"} if self.mask_part else {}

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes an input that consists of archives."""
        yield from recognize_archives(sketch, cls().image_parts)

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """Returns a member's contents; see `Source.read`."""
        data = read_image(ref, max_bytes, self.max_ratio)
        return Content(data, data)

    @property
    def siblings(self) -> Mapping[str, str]:
        """What img2dataset, WebDataset and Kaggle put next to archives."""
        return {
            "*_stats.json": "statistics",
            "*.idx": "indexes",
            "*.index": "indexes",
            "*submission*.csv": "sample submissions",
            **({posixpath.basename(self.mask_colors): ""} if self.mask_colors else {}),
        }

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields an image for each member, or for each sample."""
        listed = ""
        limits = Limits(self.max_member_bytes, self.max_members, self.max_ratio)
        members = list_members(file, limits, self.names_encoding)
        list_images = self._samples if self.labels == "beside" else self._folders
        try:
            for ref in list_images(path, file, members):
                listed = "the rest of the archive cannot be read: "
                yield ref
        except UnknownNamesError:
            raise
        except Rejected as error:
            raise bad_archive(f"{listed}{error.detail}") from None
        if not listed:
            raise bad_archive("the archive is empty")

    @property
    def remedies(self) -> Mapping[str, str]:
        """For names in an unknown encoding."""
        return {
            "bad_name": "set source.names_encoding to the encoding of the members' names, such as "
            "cp866 (Russian), cp850 (western Europe), gbk (Chinese), shift_jis (Japanese) or utf-8"
        }

    def remedy_for(self, not_stored: Collection[str]) -> str | None:
        """Returns how to read labels or semantic masks, or store texts.

        Other images and other binary parts cannot be stored.
        """
        kinds, ways = {*not_stored}, []
        if _LABEL_FILES in kinds:
            ways.append("set source.labels to `beside` to read labels next to images")
        elif any(kind in (".txt", ".json") or kind.startswith("json.") for kind in kinds):
            ways.append("source.features_from stores texts and values of .json")
        masks = sorted(kinds & MASK_PARTS)
        if masks and not self.mask_part:
            flags = f"--set source.mask_part={masks[0][1:]} --set convention=deeplab"
            ways.append(f"{flags} stores semantic masks")
        return "; ".join(ways) or None

    def _folders(self, path: str, file: ImageRef, members: Iterable[Member]) -> Iterator[ImageRef]:
        labels = 0
        for member in members:
            ref = self._reference(path, file, member)
            if not ref.status and member.name.lower().endswith(".cls"):  # never an image
                ref = ref.notice("ignored", "labels")
                labels += 1
            elif not ref.status and not is_image_name(member.name):
                yield from self._find_unread(member.name, ref)
                if is_description_name(member.name):
                    ref = ref.notice("ignored", "description")
                elif is_other_name(member.name):
                    ref = ref.notice("ignored", "not_an_image")
            if not ref.status and not ref.label and self.class_from != "none":
                ref = ref.notice("rejected", "no_class", "the member is not in a class folder")
            yield ref
        if labels:
            yield file.notice("not_stored", _LABEL_FILES, count=labels)

    def _find_unread(self, name: str, ref: ImageRef) -> Iterator[ImageRef]:
        """Yields a member that is not an image, unless its name says what it is.

        Members that the user leaves out do not get here.

        Args:
            name: its path in the archive.
            ref: a reference to it.
        """
        if role_of_name(name) != FileRole("description"):
            endings = sorted(f".{part}" for part in self._read_parts if self.labels == "beside")
            yield ref.replace(features=orjson.dumps(endings).decode()).notice("unread_member", name)

    def _samples(self, path: str, file: ImageRef, members: Iterable[Member]) -> Iterator[ImageRef]:
        unused: Counter[str] = Counter()
        unlabeled, first = 0, ""
        colors = self._read_colors(path, file)
        for parts in group_samples(members):
            refs = {
                extension: self._reference(path, file, member)
                for extension, member in parts.items()
            }
            yield from (ref for ref in refs.values() if ref.status == "ignored")
            refs = {extension: ref for extension, ref in refs.items() if ref.status != "ignored"}
            taken = next((part for part in self.image_parts if part in refs), "")
            if taken:
                image = refs[taken]
                unused.update(f".{part}" for part in refs.keys() - self._read_parts - {taken})
                if not image.status and self._label_ending not in {"", *refs}:
                    unlabeled, first = unlabeled + 1, first or parts[taken].name
                yield image if image.status else self._with_parts(image, refs, unused, colors)
            elif refs and all(is_description_name(parts[extension].name) for extension in refs):
                for extension, ref in refs.items():
                    yield from self._find_unread(parts[extension].name, ref)
                    yield ref.notice("ignored", "description")
            elif refs:
                for extension, ref in refs.items():
                    name = parts[extension].name
                    if not ref.status and self._is_stray(extension, name, unused):
                        yield from self._find_unread(name, ref)
                key, there = refs[min(refs)].key, ", ".join(sorted(refs))
                detail = _explain_lack(
                    f"there is no image next to {there}, of those that source.image_parts names",
                    path,
                )
                yield file.replace(key=key, spelling="").notice("rejected", "bad_sample", detail)
        yield from (file.notice("not_stored", kind, count=n) for kind, n in unused.items())
        if unlabeled:
            role = FileRole("unlabeled", f".{self._label_ending}")
            yield Unclaimed(role, (first,), unlabeled).as_notice(file)

    def _is_stray(self, extension: str, name: str, others: Collection[str]) -> bool:
        """Returns whether a member without an image is not what is left of a sample.

        Args:
            extension: its part.
            name: its path in the archive.
            others: parts of other samples, with a dot, that are not read.
        """
        if extension in self.image_parts or is_image_name(name):
            return False
        is_read = extension in self._read_parts
        is_part = is_read or extension in _USUAL_PARTS or f".{extension}" in others
        return not is_part or not (has_digit(name) or (is_read and not tells_of_all(name)))

    @property
    def _label_ending(self) -> str:
        """The extension of the members that hold labels; empty: images have none."""
        return "json" if self.label_part.startswith("json.") else self.label_part

    @property
    def _wanted_parts(self) -> set[str]:
        """The parts that are read: extensions, and keys as `json.KEY`."""
        return {self.label_part, *(each.part for each in self.features_from.values())}

    @property
    def _read_parts(self) -> set[str]:
        """The extensions of the members that are read."""
        texts = {"json" if part.startswith("json.") else part for part in self._wanted_parts}
        return texts | ({self.mask_part} if self.mask_part else set())

    def _with_parts(
        self,
        image: ImageRef,
        refs: Mapping[str, ImageRef],
        unused: Counter[str],
        colors: tuple[int, ...],
    ) -> ImageRef:
        """Returns the image's reference, with what the wanted members next to it hold.

        Values of `.json` that nothing reads are counted as unused.
        """
        label = ""
        try:
            texts = {
                each: self._text(refs[each])
                for each in sorted(self._read_parts & refs.keys() - {self.mask_part})
            }
            unused.update(_json_parts(texts) - self._wanted_parts)
            values = {
                key: each.value_of(value_in_part(each.part, texts))
                for key, each in self.features_from.items()
            }
            if self.label_part:
                label = class_of(
                    value_in_part(self.label_part, texts), self.label_part, self.class_names
                )
        except Rejected as error:
            detail = error.detail
            if self._read_parts - refs.keys() - {"", self.mask_part}:
                detail = _explain_lack(detail, image.uri)
            return image.notice("rejected", "bad_sample", detail)
        image = image.replace(label=label, features=pack_fields(values))
        return self._with_mask(image, refs, colors) if self.mask_part else image

    def _read_colors(self, path: str, file: ImageRef) -> tuple[int, ...]:
        """Returns the colors of semantic masks, by id; empty if the settings name no table."""
        if not self.mask_colors:
            return ()
        return read_mask_classes(DataFile(path, file).root, self.mask_colors, True).colors

    def _with_mask(
        self, image: ImageRef, refs: Mapping[str, ImageRef], colors: tuple[int, ...]
    ) -> ImageRef:
        """Returns the image's reference with its semantic mask; a rejection if it has none."""
        mask = refs.get(self.mask_part)
        key = mask.key if mask else f"{image.key.rpartition('.')[0]}.{self.mask_part}"
        given = pack_annotations([Segmentation(key, self.mask_threshold, colors)])
        image = image.replace(annotations=given)
        if mask is None:
            detail = _explain_lack(f"there is no {self.mask_part} next to it", image.uri)
            return image.notice("rejected", "no_mask_file", detail)
        if isinstance(mask, Notice):
            detail = f"{posixpath.basename(mask.key)}: {mask.detail}"
            return image.notice("rejected", "bad_sample", detail)
        return image.replace(files=(SourceFile.of(mask),))

    def _text(self, ref: ImageRef) -> bytes:
        try:
            if isinstance(ref, Notice):
                raise bad_sample(ref.detail)
            if ref.length > MAX_PART_BYTES:
                raise bad_sample(f"it has {ref.length} bytes: more than a label or a text may have")
            return read_image(ref, MAX_PART_BYTES, self.max_ratio)
        except Rejected as error:
            raise bad_sample(f"{posixpath.basename(ref.key)}: {error.detail}") from None

    def _reference(self, path: str, file: ImageRef, member: Member) -> ImageRef:
        """Returns a member's reference, with the class from its folders."""
        ref = file.replace(key=f"{file.key}/{member.name}", spelling="")
        if ignored := self._why_ignored(member.name):
            return ref.notice("ignored", ignored)
        if member.reason:
            return ref.notice("rejected", member.reason, member.detail)
        split = file.split
        if self.split and not split:
            split = find_split_word(self.split, f"{path}/{member.name}") or ""
        label = ""
        if self.labels == "folders" and self.class_from == "archive":
            label = name_of_archive(path)
        elif self.labels == "folders":
            parts = member.name.split("/")
            inner = "/".join((*parts[self.strip_folders : -1], parts[-1]))
            label = folder_label(inner, self.class_from)
        return member.place_in(ref).replace(split=split, label=label)

    def _why_ignored(self, name: str) -> str | None:
        """Returns the reason for which a member is ignored; None if it is not."""
        settings = ListingSettings(include=self.members)
        paths = accumulate(name.split("/"), posixpath.join)
        reasons = (why_ignored(settings, path, path != name) for path in paths)
        return next(filter(None, reasons), None)


SOURCE = Archives
