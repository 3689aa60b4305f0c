"""Files named in data or next to it; any that is not below the user's input is refused."""

import json
import os
import posixpath
import stat
import unicodedata
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from recordmill import storage
from recordmill.annotations.annotation import Label, Packable, pack_annotations
from recordmill.schemas.image_ref import (
    UNKNOWN_SIZE,
    ClassNames,
    ImageRef,
    Listed,
    SourceFile,
    pack_fields,
)
from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import read_image
from recordmill.transforms.inputs.json_lists import validate_in_parts

M = TypeVar("M", bound=BaseModel)

MAX_BYTES = 16 * 2**20
"""More than any file has that describes one image without containing it."""

_WHY = {"vanished": "there is no such file", "too_many_bytes": "it is longer than {:,} bytes"}

bad_annotations = partial(Rejected, "list", "bad_annotations")
_outside_root = partial(Rejected, "list", "outside_root")


class NoFileError(Rejected):
    """There is no such file."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of data that leads to other files below the same input.

    Attributes:
        path: the file's path, as `Source.list_references` receives it.
        ref: a reference to the file, whose `uri` ends with `path`, in the store's own spelling.
    """

    path: str
    ref: ImageRef

    @property
    def root(self) -> str:
        """The input that the file was found in: the folder that other paths must not leave."""
        return self.ref.uri.rsplit("/", self.path.count("/") + 1)[0]

    @property
    def spelled(self) -> str:
        """Returns the path below the root as the store writes it, perhaps in NFD.

        The paths of other files are built from it.
        """
        return self.ref.uri[len(self.root) + 1 :]

    @property
    def folder(self) -> str:
        """The folder of `spelled`; empty for the root."""
        return posixpath.dirname(self.spelled)

    def has(self, below: str) -> bool:
        """Returns whether there is a file at a path below the root."""
        try:
            return storage.size_of(resolve_inside(self.root, below)) is not None
        except (
            Rejected,
            PermissionError,
        ):
            # Without the right to list, S3 answers 403 for a missing file.
            return False

    def list_annotated(
        self,
        below: str,
        given: Iterable[Packable],
        fields: Mapping[str, Any] | None = None,
        classes: Iterable[Label] = (),
        find_other: Callable[[], str | None] | None = None,
    ) -> Iterator[Listed]:
        """Yields an image that the file describes, after any classes to announce.

        The image gets the file's split. If it does not exist or is outside the input, a rejection
        with its annotations is yielded instead.

        Args:
            below: the image's path below the root, or its full path.
            given: its annotations, one of each kind, such as the result of `boxes_of`.
            fields: the contents of `ImageRef.features` for it.
            classes: the classes of its annotations, if the file does not announce them elsewhere.
            find_other: returns the image's path below the root if it is not at `below`; None if
                there is no such image. Without it, no other path is tried.
        """
        root = self.root
        below = below.removeprefix(f"{root}/").removeprefix(f"{os.path.abspath(root)}/")
        image = self.ref.replace(key=key_of(self.ref.key, self.path, below), spelling="")
        image.annotations = pack_annotations(given)
        image.features = pack_fields(fields or {})
        try:
            uri, size, version = locate(root, below)
        except Rejected as error:
            if find_other and (other := find_other()):
                yield self.ref.notice("respelled", "", f"{below} for {other}")
                yield from self.list_annotated(other, given, fields, classes)
                return
            detail = f"named by {posixpath.basename(self.path)}: {error.detail}"
            yield image.notice("rejected", error.reason, detail)
            return
        if classes:
            yield ClassNames.of(self.ref, map(str, classes))
        yield image.replace(uri=uri, size=size, version=version)


def explain_os_error(error: OSError) -> str:
    """Returns why a file cannot be read, without its path."""
    return (error.strerror or type(error).__name__).lower()


def resolve_inside(root: str, path: str) -> str:
    """Resolves a path named in data, following links, to a place below the root.

    Args:
        root: a folder, on any file system.
        path: relative to it, `/`-separated; or the full path or URL of something below it.

    Raises:
        Rejected: it leads elsewhere, is on another store, or is not a path. The message does not
            name the root, so that it is the same on every machine.
    """
    prefix = root.rstrip("/") + "/"
    below = path[len(prefix) :] if path.startswith(prefix) else path
    normal = posixpath.normpath(below)
    is_path = "://" not in below and "\0" not in below and not below.startswith(("/", "file:"))
    if not is_path or normal == "." or ".." in below.split("/"):
        raise _outside_root(f"{path!r:.200} points outside the input, or has .. in it")
    found = prefix + normal
    # Most paths have no links, and are what they say.
    if storage.is_local(root) and (real := os.path.realpath(found)) != found:
        real_root = os.path.realpath(root)
        if os.path.commonpath([real_root, real]) != real_root:
            raise _outside_root(f"{path!r:.200} is a link that points outside the input")
    return found


def locate(root: str, path: str) -> tuple[str, int, str]:
    """Resolves a path named in data; returns it with the file's size and version.

    Raises:
        Rejected: as `resolve_inside` and `size_and_version`.
    """
    uri = resolve_inside(root, path)
    return uri, *size_and_version(uri)


def find_named_file(root: str, path: str, key: str, named_by: str) -> SourceFile:
    """Returns a file that is read with an image; it may be missing, which is found out then.

    Args:
        root: the folder that must have it.
        path: its path below the root.
        key: its name in the dataset.
        named_by: what names it, for messages.

    Raises:
        Rejected: `outside_root`.
    """
    uri, size, version = resolve_inside(root, path), UNKNOWN_SIZE, ""
    with suppress(Rejected):
        size, version = size_and_version(uri)
    return SourceFile.named(key, uri, size, version, named_by)


def size_and_version(uri: str) -> tuple[int, str]:
    """Returns a file's size and modification time, as in references.

    For a file on a store, returns (-1, ""), because asking costs a request.

    Raises:
        Rejected: `vanished`: there is no such file, or its status cannot be read; `not_a_file`.
    """
    if not storage.is_local(uri):
        return -1, ""
    try:
        status = os.stat(uri)
    except OSError as error:
        raise Rejected("list", "vanished", explain_os_error(error)) from None
    if not stat.S_ISREG(status.st_mode):
        raise Rejected("list", "not_a_file", "it is a folder, a device or a pipe, not a file")
    return status.st_size, str(status.st_mtime_ns)


def key_of(key: str, path: str, other: str) -> str:
    """Returns the key for the path `other` in the input in which `path` has the key `key`."""
    return key[: len(key) - len(path)] + unicodedata.normalize("NFC", posixpath.normpath(other))


def read_sibling(uri: str, max_bytes: int = MAX_BYTES) -> bytes:
    """Reads a whole file that describes images; retries if the store fails.

    Args:
        uri: where it should be.
        max_bytes: the most that is read. Formats whose files describe many images, or contain one,
            need more.

    Raises:
        NoFileError: it does not exist.
        Rejected: stage `list`, `bad_annotations`: it cannot be read, or is too long.
        Exception: the store failed at every try.
    """
    try:
        return read_image(ImageRef(uri, uri, -1), max_bytes)
    except Rejected as rejected:
        why = _WHY.get(rejected.reason, rejected.detail).format(max_bytes)
        kind = NoFileError if rejected.reason == "vanished" else Rejected
        raise kind("list", "bad_annotations", f"{uri.rpartition('/')[2]}: {why}") from None


def read_json(uri: str, max_bytes: int, model: type[M], long_list: str | None = None) -> M:
    """Reads a JSON file that describes images, with or without a byte order mark, into a model.

    Args:
        uri: where it is.
        max_bytes: the most that is read.
        model: the model.
        long_list: the key of a list that takes most of a long file; as in `validate_in_parts`.

    Raises:
        Rejected: `bad_annotations`: it cannot be read, or does not fit the model; the message says
            where.
        Exception: the store failed at every try.
    """
    data = read_sibling(uri, max_bytes).removeprefix(BOM_UTF8)
    if long_list is not None:
        contents = validate_in_parts(data, model, long_list)
        if contents is not None:
            return contents
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        if entry := _name_entry(data, first["loc"]):
            where = f"{where} ({entry})"
        raise bad_annotations(
            ": ".join(filter(None, ("the JSON does not fit", where, first["msg"])))
        ) from None


def _name_entry(data: bytes, place: Sequence[int | str]) -> str | None:
    """Returns `id ...` of the entry of a list in a JSON file that contains a place.

    Returns None if the entry has no id, or the file is so long that another reading would take too
    much memory.
    """
    if len(place) < 2 or len(data) > MAX_BYTES:
        return None
    with suppress(ValueError, LookupError, TypeError, RecursionError):
        number = json.loads(data)[place[0]][place[1]]["id"]
        return f"id {number!r:.60}"
    return None
