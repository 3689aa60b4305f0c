"""Images in tar, tar.gz and zip archives, which stay packed; classes come from folders or from files next to images."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from typing import ClassVar, Literal

import orjson

from recordmill import storage
from recordmill.schemas.image_ref import Content, ImageRef, Listed, Notice
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.setting_fields import AtLeastOne, added_setting
from recordmill.schemas.settings.source import ListingSettings
from recordmill.storage.packed_files import MAX_RATIO, read_image
from recordmill.transforms.inputs.archives import samples
from recordmill.transforms.inputs.archives.members import Limits, Member, bad_archive, list_members
from recordmill.transforms.inputs.archives.samples import are_in_one_folder, recognise_archives
from recordmill.transforms.inputs.listing.folder_sketch import FolderSketch, Recognised
from recordmill.transforms.inputs.listing.local_folders import why_ignored
from recordmill.transforms.inputs.listing.patterns import compile_pattern
from recordmill.transforms.inputs.sources.class_folders import folder_label
from recordmill.transforms.inputs.sources.source import Source

MOST_SEEN = 100_000
"""Members that are checked for one folder around everything."""

_ENDING = re.compile(r"(?<=.)\.(tar|tar\.gz|tgz|zip)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archives(Source):
    """The source `archives`.

    Attributes:
        labels: where classes come from: `folders` inside the archive; or `beside`: files next to an image that share
            its name and form one sample with it, as in WebDataset's shards.
        class_from: which folder of `a/b/image.jpg` in the archive names the class: `first_folder` (a), `last_folder`
            (b) or `path` (a/b); `archive`: the archive's own name without its extension; `none`: images have no labels.
        look_through: whether to skip a folder that contains everything, as `zip -r signs.zip signs` makes it, so that
            the folders in it are the first. Detected automatically with `class_from: first_folder`.
        label_part: with `beside`, the extension of the file that holds the label, or `json.KEY`; empty: no label.
        class_names: with `beside`, the names of the classes, if labels are numbers from 0; empty: labels are names, or
            ids with `labels.ids: integers`.
        image_parts: with `beside`, the extensions of images; if a sample has several, the first in this order is used.
        features_from: with `beside`, additional features: `{image/caption: {part: txt}}`, or from `.json` `{score:
            {part: json.score, type: float}}`; `many` for lists, `default` for missing values.
        split: a regular expression (RE2's syntax), searched for in `archive.tar/path/of/member.jpg`; its group `split`
            is the word that `splits.from_source` maps to a split. Empty: none.
        members: patterns (gitignore's syntax) of the members to read; others are ignored. Empty: all.
        max_member_bytes: larger members are rejected.
        max_ratio: members of a zip archive that unpack to more than this many times their size are rejected; a packed
            tar is not unpacked beyond that.
        max_members: the most members that are read from one archive.
    """

    labels: Literal["folders", "beside"] = "folders"
    class_from: Literal["first_folder", "last_folder", "path", "archive", "none"] = "first_folder"
    look_through: bool = added_setting(False)
    label_part: str = "cls"
    class_names: tuple[str, ...] = ()
    image_parts: tuple[str, ...] = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff", "ppm")
    features_from: Mapping[str, samples.PartFeature] = field(default_factory=dict)
    split: str = ""
    members: tuple[str, ...] = ()
    max_member_bytes: AtLeastOne = 256 * 2**20
    max_ratio: AtLeastOne = MAX_RATIO
    max_members: AtLeastOne = 10_000_000

    files: ClassVar[tuple[str, ...]] = ("*.tar", "*.tar.gz", "*.tgz", "*.zip")
    split_settings: ClassVar[tuple[str, ...]] = ("split",)

    def __post_init__(self) -> None:
        """Raises ValueError if a setting is invalid."""
        if self.split:
            compile_pattern(self.split, "source.split", "split")
        if self.features_from and self.labels != "beside":
            raise ValueError("source.features_from needs `source.labels: beside`")
        for key, feature in self.features_from.items():
            feature.check(key)
        self.classes()

    @property
    def gives_labels(self) -> bool:
        """Whether the settings name a place for labels."""
        return self.label_part != "" if self.labels == "beside" else self.class_from != "none"

    def idle_settings(self) -> Mapping[str, str]:
        """The settings for the other value of `labels`."""
        if self.labels == "beside":
            return dict.fromkeys(("class_from", "look_through"), "source.labels is `beside`")
        idle = dict.fromkeys(("label_part", "class_names", "image_parts"), "source.labels is folders")
        if self.class_from in ("archive", "none"):
            idle["look_through"] = f"source.class_from is {self.class_from}"
        return idle

    @classmethod
    def recognise(cls, sketch: FolderSketch) -> Iterator[Recognised]:
        """Recognises archives of images and nothing else."""
        return recognise_archives(sketch)

    def settle(self, files: Iterator[ImageRef], note: Callable[[str], None]) -> "Archives":
        """Sets `look_through` if one folder with several folders contains everything."""
        if self.look_through or self.labels != "folders" or self.class_from != "first_folder":
            return self
        try:
            # On a store, a packed archive would be unpacked here and again on each worker.
            seen = (file for file in files if storage.is_local(file.uri) or not file.uri.lower().endswith("gz"))
            members = (each for file in seen for each in list_members(file, self._limits) if not each.reason)
            names = (each.name for each in members if not self._ignores(each.name))
            if not are_in_one_folder(islice(names, MOST_SEEN)):
                return self
        except (Rejected, OSError):  # the job says what is wrong
            return self
        note("one folder is around everything in the archives: the folders in it are the classes (source.look_through)")
        return replace(self, look_through=True)

    @property
    def _limits(self) -> Limits:
        return Limits(self.max_member_bytes, self.max_members, self.max_ratio)

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """A member's contents; see `Source.read`."""
        data = read_image(ref, max_bytes, self.max_ratio)
        return Content(data, data)

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields an image for each member, or for each sample."""
        listed = ""
        list_images = self._samples if self.labels == "beside" else self._folders
        try:
            for ref in list_images(path, file, list_members(file, self._limits)):
                listed = "the rest of the archive cannot be read: "
                yield ref
        except Rejected as error:
            raise bad_archive(f"{listed}{error.detail}") from None
        if not listed:
            raise bad_archive("the archive is empty")

    def _folders(self, path: str, file: ImageRef, members: Iterable[Member]) -> Iterator[ImageRef]:
        for member in members:
            ref = self._reference(path, file, member)
            if not ref.status and not ref.label and self.class_from != "none":
                ref = ref.notice("rejected", "no_class", "the member is not in a class folder")
            yield ref

    def _samples(self, path: str, file: ImageRef, members: Iterable[Member]) -> Iterator[ImageRef]:
        for sample in samples.group_samples(members, self.image_parts):
            refs = {extension: self._reference(path, file, member) for extension, member in sample.parts.items()}
            yield from (ref for ref in refs.values() if ref.status == "ignored")
            refs = {extension: ref for extension, ref in refs.items() if ref.status != "ignored"}
            if sample.image in refs:
                yield self._with_parts(sample, refs)
            elif refs:
                key, there = refs[min(refs)].key, ", ".join(sorted(refs))
                detail = f"there is no image next to {there}, of those that source.image_parts names"
                yield file.replace(key=key, spelling="").notice("rejected", "bad_sample", detail)

    def _with_parts(self, sample: samples.Sample, refs: Mapping[str, ImageRef]) -> ImageRef:
        """The image's reference, with the members next to it."""
        image = refs[sample.image]
        if image.status:
            return image
        parts = (self.label_part, *(feature.part for feature in self.features_from.values()))
        wanted = samples.extensions_of(parts)
        label = ""
        try:
            if sample.may_lack and not wanted <= refs.keys():
                lost = ", ".join(sorted(wanted - refs.keys()))
                raise samples.bad_sample(f"{lost} may be in the rest of the archive, which cannot be read")
            texts = {each: self._text(sample.parts[each].name, refs[each]) for each in sorted(wanted & refs.keys())}
            values = {
                key: each.value_of(samples.value_of(each.part, texts)) for key, each in self.features_from.items()
            }
            if self.label_part:
                label = samples.class_of(samples.value_of(self.label_part, texts), self.label_part, self.class_names)
        except Rejected as error:
            return image.notice("rejected", "bad_sample", error.detail)
        return image.replace(label=label, features=orjson.dumps(values).decode() if values else "")

    def _text(self, name: str, ref: ImageRef) -> bytes:
        if isinstance(ref, Notice):
            raise samples.bad_sample(f"{name}: {ref.detail}")
        if ref.length > samples.MAX_PART_BYTES:
            raise samples.bad_sample(f"{name} has {ref.length} bytes: more than a label or a text may have")
        try:
            return read_image(ref, samples.MAX_PART_BYTES, self.max_ratio)
        except Rejected as error:
            raise samples.bad_sample(f"{name}: {error.detail}") from None

    def _reference(self, path: str, file: ImageRef, member: Member) -> ImageRef:
        """A member's reference, with the class from its folders."""
        ref = file.replace(key=f"{file.key}/{member.name}", spelling="")
        if ignored := self._ignores(member.name):
            return ref.notice("ignored", ignored)
        if member.reason:
            return ref.notice("rejected", member.reason, member.detail)
        word, label = file.split, ""
        if self.split and not word:
            match = compile_pattern(self.split, "source.split", "split").search(f"{path}/{member.name}")
            word = (match["split"] or "") if match else ""
        if self.labels == "folders" and self.class_from == "archive":
            label = _ENDING.sub("", posixpath.basename(path))
        elif self.labels == "folders":
            label = folder_label(member.name.partition("/")[2] if self.look_through else member.name, self.class_from)
        return member.place_in(ref).replace(split=word, label=label)

    def _ignores(self, name: str) -> str:
        """The reason for which a member is ignored; empty if it is not."""
        settings = ListingSettings(include=self.members)
        paths = accumulate(name.split("/"), posixpath.join)
        return next(filter(None, (why_ignored(settings, path, path != name) for path in paths)), "")


SOURCE = Archives
