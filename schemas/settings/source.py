"""The inputs, the settings that select files, and the interface of sources.

Settings and steps use sources through this interface.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Protocol, Self, runtime_checkable

from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import Content, ImageRef, Listed
from recordmill.schemas.setting_fields import STRICT
from recordmill.schemas.str_path import StrPath


@dataclass(frozen=True, slots=True, init=False)
class Input:
    """One folder or file to read.

    Attributes:
        path: the folder or file.
        name: what its images' keys begin with; empty: nothing.
        pattern: a pattern in gitignore's syntax: only files below the folder that match it are
            read; empty: all.
    """

    path: str
    name: str = ""
    pattern: str = ""

    def __init__(self, path: StrPath, name: str = "", pattern: str = "") -> None:
        object.__setattr__(self, "path", os.fspath(path))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "pattern", pattern)

    def select(self, settings: "ListingSettings") -> "ListingSettings":
        """Returns the settings for this input, whose pattern selects files as `include` does."""
        if not self.pattern:
            return settings
        left_by_user = settings.left_by_user | {"not_included"}
        return replace(
            settings,
            include=(self.pattern,),
            not_included="not_included",
            left_by_user=left_by_user,
        )


@dataclass(frozen=True, slots=True)
class ListingSettings:
    """Selects the files to read, and gives them splits and groups.

    Attributes:
        include: patterns in gitignore's syntax, matched against paths below an input; empty:
            everything.
        ignore: patterns in the same syntax, of files and folders to ignore.
        from_folders: if set, the first folder gives the split: folder names to split names.
        from_source: if set, the source gives the split: its words to split names.
        classes_known: whether the user has said which classes there are, so that a folder `train`
            may be one.
        group: if set, a pattern; keys with the same text in its group `group` stay in one split.
        not_included: the reason for ignoring files that match none of `include`.
        left_by_user: reasons for ignoring files with which the user has chosen what to read, so
            that the other files are not missed.
        inputs: how many inputs there are, which share the requests to stores.
        only_images: whether a source of plain images ignores files with the extension of a text, a
            table or the like.
        with_outlines: whether references carry the outlines of objects.
        without: kinds of annotations that references do not carry; notes give their numbers.
        rename: new names of classes by the source's names; None for a class that is dropped later.
    """

    include: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    from_folders: Mapping[str, str] = field(default_factory=dict)
    from_source: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    classes_known: bool = False
    not_included: str = "not_included"
    left_by_user: frozenset[str] = frozenset()
    inputs: int = 1
    only_images: bool = False
    with_outlines: bool = False
    without: frozenset[str] = frozenset()
    rename: Mapping[str, str | None] = field(default_factory=dict)


@runtime_checkable
class SourceSettings(Protocol):
    """A source's settings: its fields are its YAML keys.

    `transforms.inputs.sources` has the sources themselves.

    Attributes:
        kind: the name that users write, which is that of the source's module.
        contents: `images`, or `rows` if there are no images, only fields.
        files: patterns (gitignore's syntax) of the files that it reads unless the user sets
            `include`; empty: all. `include` replaces them, so `list_references` must accept any
            file.
        other_files: the reason for which files that match none of `files` are `ignored` in the
            ledger; alternatives are `taken_only_by_name`, if those in `files` name images, and
            `read_only_with_images`.
        annotation_endings: the extensions of listed files that are named after images; without a
            split, they are ignored, because their images are rejected.
        is_about_boxes: whether it reads annotations of boxes and nothing else.
        classes_from: where the user names its classes, in words.
        split_settings: settings that find a word for each image's split, and do nothing else.
        group_setting: the setting that names each image's group; empty: there is none.
        gives_pixels: whether `read` gives pixels, so that there is nothing to decode.
        gives_words: whether a file's place or name always gives a word for `splits.from_source`.
        labels_from_folders: whether folders name classes, so that one called `train` may be a class
            or a split.
        shared_files: names of files directly in an input that concern the images of all split
            folders.
        reads_sets: whether its files hold many images each, and are often parts of a set with
            numbers such as `-00000-of-00005`.
        names_pixel_ids: whether its classes are those of the ids in semantic masks.
        maps_pixel_ids: whether its semantic masks have no ids of their own, so that they get those
            of the label map.
        takes_all_images: whether every image is taken, whatever the others are, so that a mask
            would be an image of its own.
    """

    __pydantic_config__: ClassVar[Mapping[str, object]] = STRICT

    kind: ClassVar[str] = ""
    contents: ClassVar[Literal["images", "rows"]] = "images"
    files: ClassVar[tuple[str, ...]] = ()
    other_files: ClassVar[str] = "not_included"
    annotation_endings: ClassVar[tuple[str, ...]] = ()
    is_about_boxes: ClassVar[bool] = False
    classes_from: ClassVar[str] = "the annotations"
    split_settings: ClassVar[tuple[str, ...]] = ()
    group_setting: ClassVar[str] = ""
    gives_pixels: ClassVar[bool] = False
    gives_words: ClassVar[bool] = False
    labels_from_folders: ClassVar[bool] = False
    shared_files: ClassVar[tuple[str, ...]] = ()
    reads_sets: ClassVar[bool] = False
    names_pixel_ids: ClassVar[bool] = False
    maps_pixel_ids: ClassVar[bool] = False
    takes_all_images: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kind = cls.__module__.rpartition(".")[2]

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields a reference for each image of one file.

        It works without Beam, and if possible without reading the file.

        Args:
            path: the file's path below the input, without the folder that gave its split;
                `/`-separated, NFC.
            file: a reference to the whole file: `key`, `uri`, `size`, `version` and, if known,
                `spelling` and `split` are set.

        Yields:
            References with `label`, `group`, `split`, `features` and byte range set, each with a
            key of its own; notices of what does not become an image (`file.notice(...)`); and
            `ClassNames` if the source knows the classes. At least one item: a file without an image
            is `ignored`, and counted.

        Raises:
            Rejected: the file, or the rest of it, is rejected.
        """

    def list_with_outlines(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields the same references, which also carry the outlines of the images' objects.

        A source that reads outlines overrides it, and has `masks` in `annotations`. The arguments
        and errors are those of `list_references`.
        """
        return self.list_references(path, file)

    @property
    def remedies(self) -> Mapping[str, str]:
        """What to do about rejected images, by reason; each is the end of a sentence."""
        return {}

    def remedy_for(self, not_stored: Collection[str]) -> str | None:
        """Returns how to store values of these kinds, as the end of a sentence; None: no way."""
        return self.remedies.get("not_stored")

    def remedy_for_masks(self, not_stored: Collection[str]) -> str:
        """Returns how to store the masks of objects, as the end of a sentence.

        Args:
            not_stored: all kinds of values that are not stored.
        """
        return f"--set masks=png stores {'masks' if len(not_stored) > 1 else 'them'}"

    @property
    def siblings(self) -> Mapping[str, str]:
        """Files that downloads of this format contain besides what is read, by pattern.

        Each has what is lost without it, in the plural, as `files of captions`; empty: nothing. In
        a pattern, `*` stands for any characters but slashes, `**` for any; case does not matter,
        and neither do the folders above. The first pattern that fits counts.
        """
        return {}

    @property
    def mask_files(self) -> tuple[str, ...]:
        """Patterns, as in `siblings`, of files that are read with their images for masks."""
        return ()

    def features(self) -> tuple[Feature, ...]:
        """Returns the features that this source adds to a convention's own.

        Their `field` is a name in `ImageRef.features`.
        """
        return ()

    def annotations(self) -> Mapping[str, str]:
        """Returns what images may have besides one class, by kind of annotation.

        These are `boxes`, `labels` (several classes), `masks`, `keypoints`, `attributes` and
        `corners` of the objects in the boxes, `segmentation` (a semantic mask), and `pairs` (second
        images). By default, they have nothing else. Each entry has the YAML key that asks for it,
        or the empty string if the files decide.
        """
        if self.is_about_boxes:
            return {"boxes": ""}
        return {}

    @property
    def gives_labels(self) -> bool:
        """Whether any image may have a class, or a box of one."""
        return True

    @property
    def annotation_format(self) -> str | None:
        """The format of the files of annotations that it reads; None for others and for tables."""
        return None

    @property
    def late_labels(self) -> bool:
        """Returns whether labels are read with the images.

        If so, splits cannot be stratified, and records cannot be copied unread.
        """
        return False

    @property
    def may_give_pixels(self) -> bool:
        """Whether `read` gives the pixels of some images."""
        return self.gives_pixels

    def idle_settings(self) -> Mapping[str, str]:
        """Returns the source's own settings that have no effect because of others.

        Each name has the reason in a few words. A value other than the default is refused at
        launch: "source.NAME has no effect, since REASON: remove it".
        """
        return {}

    def settle(self, files: Iterator[ImageRef], note: Callable[[str], None]) -> Self:
        """Fills in the settings that follow from others, or that only the files determine.

        Called once, by the launcher; the dataset's configuration contains the result.

        Args:
            files: a reference to each whole file that is not ignored; listed when they are
                requested.
            note: called with each note for the user.

        Raises:
            SettingError: the files contradict each other.
        """
        return self

    def classes(self) -> Mapping[str, int]:
        """Returns the classes, with their numbers, that settings alone determine.

        See `ClassNames`.
        """
        return {}

    def uses(self, ref: ImageRef) -> Iterable[str]:
        """Returns the files that one reference was made from; by default, its own and `ref.files`.

        Those that were ignored when they were listed are used after all.

        Args:
            ref: one of the references that `list_references` gave, rejected ones too.
        """
        return (ref.uri, *(file.uri for file in ref.files))

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """Reads what one reference holds.

        Args:
            ref: one of the references that `list_references` gave.
            max_bytes: more is not read.

        Raises:
            Rejected: there is something wrong with this one.
        """
