"""What settings, and the steps, know of a source."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar, Literal, Protocol, Self, runtime_checkable

from recordmill.schemas.content import Content
from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import ImageRef, Listed


@runtime_checkable
class SourceSettings(Protocol):
    """A source's settings: its fields are its YAML keys. `transforms.inputs.sources` has the sources themselves.

    Attributes:
        kind: the name that users write, which is that of the source's module.
        contents: `images`, or `rows` where there are no images but fields alone.
        files: patterns (gitignore's syntax) of the files that it reads unless the user sets `include`; empty: all.
            `include` replaces them, so `list_references` must accept any file.
        other_files: the reason for which files that match none of `files` are `ignored` in the ledger. Others are
            `taken_only_by_name`, if those in `files` name images, and `read_only_with_images`.
        is_about_boxes: whether it reads annotations of boxes and nothing else.
        classes_from: where the user names its classes, in words.
        short_forms: settings that are mappings of mappings. Each inner mapping may be written as one text instead, as
            the value of the key given here.
        split_settings: settings that find a word for each image's split, and do nothing else.
        group_setting: the setting that names each image's group; empty: there is none.
        gives_pixels: whether `read` gives pixels, so that there is nothing to decode.
        gives_words: whether a file's place or name always gives a word for `splits.from_source`.
        labels_from_folders: whether folders name classes, so that one called `train` may be a class or a split.
        shared_files: names of files directly in an input that concern the images of all split folders.
    """

    kind: ClassVar[str] = ""
    contents: ClassVar[Literal["images", "rows"]] = "images"
    files: ClassVar[tuple[str, ...]] = ()
    other_files: ClassVar[str] = "not_included"
    is_about_boxes: ClassVar[bool] = False
    classes_from: ClassVar[str] = "the annotations"
    short_forms: ClassVar[Mapping[str, str]] = {}
    split_settings: ClassVar[tuple[str, ...]] = ()
    group_setting: ClassVar[str] = ""
    gives_pixels: ClassVar[bool] = False
    gives_words: ClassVar[bool] = False
    labels_from_folders: ClassVar[bool] = False
    shared_files: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kind = cls.__module__.rpartition(".")[2]

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields a reference for each image of one file; without Beam, and without reading the file where possible.

        Args:
            path: the file's path below the input, without the folder that gave its split; `/`-separated, NFC.
            file: a reference to the whole file: `key`, `uri`, `size`, `version` and, where given, `spelling` and
                `split` are set.

        Yields:
            References with `label`, `group`, `split`, `features` and byte range set, each with a key of its own;
            notices of what does not become an image (`file.notice(...)`); and `ClassNames` where the source knows the
            classes. Never nothing: a file without an image is `ignored`, and counted.

        Raises:
            Rejected: the file, or the rest of it, is rejected.
        """
        ...

    @property
    def remedies(self) -> Mapping[str, str]:
        """What to do where images are rejected for a reason: the end of a sentence, by reason."""
        return {}

    def features(self) -> tuple[Feature, ...]:
        """Features that this source adds to a convention's own; their `field` is a name in `ImageRef.features`."""
        return ()

    def annotations(self) -> Mapping[str, str]:
        """What images may have besides one class: `boxes`, `labels` (several classes). By default nothing.

        Each has the YAML key that asks for it, or the empty string where the files decide.
        """
        return {"boxes": ""} if self.is_about_boxes else {}

    @property
    def gives_labels(self) -> bool:
        """Whether any image may have a class, or a box of one."""
        return True

    @property
    def late_labels(self) -> bool:
        """Whether labels are read with the images: splits cannot be stratified then, nor records copied unread."""
        return False

    @property
    def may_give_pixels(self) -> bool:
        """Whether `read` gives the pixels of some images."""
        return self.gives_pixels

    def idle_settings(self) -> Mapping[str, str]:
        """The source's own settings that cannot act under the others, by name, with the reason in a few words.

        A value other than the default is refused at launch: "source.NAME has no effect, since REASON: remove it".
        """
        return {}

    def settle(self, files: Iterator[ImageRef], note: Callable[[str], None]) -> Self:
        """The source with those settings filled in that follow from others, or that only its files can tell.

        Called once, by the launcher; what it gives is what the dataset's configuration says.

        Args:
            files: a reference to each whole file that is not ignored; listed when they are asked for.
            note: takes what the user should know of it.

        Raises:
            ValueError: the files contradict each other; the message begins with the YAML key.
        """
        return self

    def classes(self) -> Mapping[str, int]:
        """The classes that its settings alone tell, by their numbers; see `ClassNames`."""
        return {}

    def uses(self, ref: ImageRef) -> Iterable[str]:
        """The files that one reference was made of: what was ignored when it was listed, and is here, is used.

        Args:
            ref: one of the references that `list_references` gave, rejected ones too.
        """
        return (ref.uri,)

    def should_describe(self, key: str) -> bool:
        """Whether a file that matches none of `files` describes one image by its name: it is lost without the image."""
        return False

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """Reads what one reference holds.

        Args:
            ref: one of the references that `list_references` gave.
            max_bytes: more is not read.

        Raises:
            Rejected: there is something wrong with this one.
        """
        ...
