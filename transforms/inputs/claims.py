"""Which listed files a source claims, and what happens to the others."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.schemas.settings.source import ListingSettings, SourceSettings
from recordmill.transforms.inputs.file_groups import first_folder_of
from recordmill.transforms.inputs.file_roles import (
    FileRole,
    is_description_name,
    is_other_name,
    role_of_name,
)
from recordmill.transforms.inputs.image_suffixes import is_image_name
from recordmill.transforms.inputs.listed_pairs import ListedImages
from recordmill.transforms.inputs.unclaimed_files import UnclaimedFiles, find_sibling

_UNREAD = frozenset(
    (
        "not_an_image",
        "not_annotations",
        "not_included",
        "read_only_with_images",
        "taken_only_by_name",
    )
)
"""Why a source ignores a file that it does not know."""

_NO_IMAGE = frozenset(("no_class", "no_split", "name_mismatch"))
"""Why a source rejects a file by its name or place."""


@dataclass(slots=True)
class Claims:
    """Sorts the files of an input, or of a part of it, by whether their source claims them.

    Attributes:
        source: what the files mean.
        settings: which files are read.
        unclaimed: what no source claims.
        images: what the source takes, if it takes all images.
    """

    source: SourceSettings
    settings: ListingSettings
    unclaimed: UnclaimedFiles = field(default_factory=UnclaimedFiles)
    images: ListedImages = field(default_factory=ListedImages)
    _siblings: Mapping[str, str] = field(init=False)
    _takes_members: bool = field(init=False)
    _may_be_pairs: bool = field(init=False)

    def __post_init__(self) -> None:
        """Asks the source once."""
        self._siblings = self.source.siblings
        if self.settings.with_outlines:
            # The first pattern that fits counts.
            read = dict.fromkeys(self.source.mask_files, "")
            self._siblings = {**read, **self.source.siblings}
        # Otherwise, the settings say which images are pairs.
        are_unknown = "pairs" not in self.source.annotations()
        self._may_be_pairs = self.source.takes_all_images and are_unknown
        self._takes_members = self.source.takes_all_images and self.source.reads_sets

    def ignore(self, path: str, file: ImageRef) -> Notice | None:
        """Returns the notice of a file that no source needs to see; None for others.

        These are descriptions and, for a source of plain images, files with another extension.
        """
        if described := self.describe(path, file):
            return described
        source = self.source
        reads_others = source.reads_sets or source.is_about_boxes
        if not self.settings.only_images or not source.takes_all_images or reads_others:
            return None
        if not is_other_name(path):
            return None
        return self.place(file.notice("ignored", "not_an_image"), path)

    def describe(self, path: str, file: ImageRef) -> Notice | None:
        """Returns the notice of a file that no source needs to see; None for others.

        Such files describe the collection, or are known files of the format. A source that names
        its files is asked first, unless there is no doubt. The file is not named like an image.
        """
        if not self.settings.include:
            return self._describe(path, file)
        is_chosen = "not_included" in self.settings.left_by_user
        if is_chosen or role_of_name(path) != FileRole("description"):
            return None
        return file.notice("ignored", "description")

    def place(self, notice: Notice, path: str) -> Notice:
        """Notes the fate of a whole file, and returns it with a better reason if there is one.

        Args:
            notice: the notice that the listing, or the source, gave of the file.
            path: the file's path below the input.
        """
        if notice.status == "ignored" and notice.reason in _UNREAD - self.settings.left_by_user:
            if described := self._describe(path, notice):
                return described
            if is_image_name(path):  # annotations may name it
                self._take_image(path)
            elif not self._is_read(path):
                self.unclaimed.files.add(path, notice)
        elif notice.status == "rejected" and not is_image_name(path):
            if notice.reason in _NO_IMAGE:
                self.unclaimed.files.add(path, notice)
            else:
                self.unclaimed.suspects.add(path, notice)
        elif notice.reason == "in_no_set" and not is_image_name(path):
            self.unclaimed.unlisted.add(path, notice)
        return notice

    def take(self, path: str, file: ImageRef, ref: ImageRef | None) -> None:
        """Notes a file from which the source made images.

        Args:
            path: its path below the input.
            file: a reference to it.
            ref: the only image that was made of it, if there is only one.
        """
        if is_image_name(path):
            self._take_image(path)
            if self._may_be_pairs:
                self.images.add(path)
        elif ref is not None and ref.uri == file.uri and ref.key == file.key:
            self.unclaimed.files.add(path, file)
        else:
            self.unclaimed.files.claimed.add(path)

    def take_member(self, ref: ImageRef, file: ImageRef) -> None:
        """Notes a member of an archive: an image, or one that is not read.

        Args:
            ref: a reference to it, or the notice `unread_member`.
            file: a reference to the archive.
        """
        members = self.unclaimed.members
        if isinstance(ref, Notice):
            members.add(ref.reason, ref)
            if endings := orjson.loads(ref.features):
                members.claimed.endings.update(endings)
                members.claimed.has_more_places = True
        elif is_image_name(name := ref.key[len(file.key) + 1 :]):
            members.claimed.first_folders.add(first_folder_of(name))

    def _take_image(self, path: str) -> None:
        self.unclaimed.files.claimed.first_folders.add(first_folder_of(path))

    def see_member(self, path: str, file: ImageRef, ref: ImageRef) -> None:
        """Notes an image in a file of many, if the source takes all of them.

        Args:
            path: the path of the file below the input.
            file: a reference to it.
            ref: a reference to the image.
        """
        if self._takes_members and is_image_name(ref.key):
            self.images.add_member(path, file, ref)

    def _is_read(self, path: str) -> bool:
        """Returns whether a known file of the format is read, or has nothing to lose."""
        if find_sibling(path, self._siblings) is None:
            return False
        self.unclaimed.files.claimed.add(path)
        return True

    def _describe(self, path: str, file: ImageRef) -> Notice | None:
        if what := find_sibling(path, self._siblings):
            self.unclaimed.siblings[what] += 1
            return file.notice("ignored", "known_sibling")
        if what == "" or not is_description_name(path):
            return None
        if role_of_name(path) is None:  # its content may show that it is a list
            self.unclaimed.files.add(path, file)
        return file.notice("ignored", "description")
