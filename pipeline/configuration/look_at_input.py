"""Looks at a sample of an input before the job: some names, and the first bytes of a few files."""

import csv
import io
import os
import posixpath
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import accumulate, chain, islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recordmill import storage
from recordmill.imaging.acceptance import sniff
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.storage.packed_files import MAX_RATIO, read_image
from recordmill.storage.stores.store import in_parallel
from recordmill.storage.tfrecord_file import compression_of
from recordmill.transforms.inputs.archive_members import Limits, list_members
from recordmill.transforms.inputs.folder_sketch import (
    ARCHIVE_ENDINGS,
    FolderSketch,
    Names,
    begins_with_split,
    is_unknown_file,
)
from recordmill.transforms.inputs.named_files import size_and_version
from recordmill.transforms.inputs.pair_names import sample_names
from recordmill.transforms.inputs.patterns import Ignore, normal_path
from recordmill.transforms.inputs.tables.parquet import (
    bytes_type_fault,
    class_names,
    fields_next_to_bytes,
)
from recordmill.transforms.inputs.tables.read_table import TABLE_ENDINGS
from recordmill.transforms.inputs.tables.recognize_tables import BOXES_OF_OPEN_IMAGES
from recordmill.transforms.inputs.tables.table_heads import (
    HELD,
    HELD_LIST,
    NUMBERS,
    OBJECTS,
    OTHER_BYTES,
    SEVERAL,
    STRUCT,
    show_fields,
)

MOST_NAMES = 1000
"""Names that are requested from a store for one folder: one page."""

REVEALING_PREFIXES = (
    "_annotations",
    "annotations",
    "classes.txt",
    "data.yaml",
    "labels",
    "metadata.",
    "obj.names",
    "test",
    "train",
    "val",
)
"""Prefixes to request too if a store's folder has more names: they reveal the layout."""

MOST_FOLDERS = 32
"""Folders of one level that are looked into."""

MOST_KEPT = 10_000
"""Names of one folder that are kept."""

HEAD_BYTES = 1024
JSON_HEAD_BYTES = 64 * HEAD_BYTES
"""More of JSON is read, because COCO's list of images may follow long categories."""

WIDE_HEAD_BYTES = 2**16
"""The same for a table whose first two lines are longer."""

PARQUET_ROWS = 16
"""Rows of Parquet whose text and numbers are read; only one row's images are."""

MOST_HEADS = 10

MOST_UNKNOWN = 4
"""Files with names of no known form whose first bytes are read, if there are no images."""

MOST_MEMBERS = 1000
"""Members of a folder in an archive that are kept, and of samples that are listed."""

FEW_MEMBERS = 4
"""The same for each further folder if `MOST_KEPT` members are kept."""

MOST_MEMBERS_OF_TAR = 20_000
MOST_MEMBERS_ON_STORE = 100
"""Members of a tar that are listed; on a store, each may take a request. A zip has a directory."""

PACKED_START = 2**20
"""Bytes of a packed tar that are read; eight times as many if it is not on a store."""

ANNOTATION_FOLDERS = frozenset(
    {"annotations", "annotation", "annots", "xmls", "xml", "labels", "jsons", "imagesets", "main"}
)
"""Names, in lower case, of folders of annotations or lists, which are also looked into below other
folders."""

IMAGE_FOLDERS = frozenset({"images", "image", "imgs", "img", "jpegimages"})
"""Names, in lower case, of folders of images."""

_HEADS = {
    (".json",): 2,
    (".xml",): 2,
    (".yaml", ".yml"): 1,
    TABLE_ENDINGS: 4,
    (".names", ".labels"): 1,
    (".txt",): 3,
}
"""Extensions, and how many files with them are read per folder; the kinds are read in this
order."""


def look_at_input(path: str, ignore: Ignore) -> FolderSketch:
    """Makes the sketch of an input.

    Args:
        path: a folder or a file, on any file system.
        ignore: decides whether a path below the input is ignored.

    Raises:
        OSError: the store does not answer, or denies access to the input.
    """
    root, top, only = _look_at_top(path, ignore)
    names = {"": top} | _look_into(root, sorted(top.folders, key=_rank), ignore)
    for _ in range(2):  # train/labels, labels/train; then VOC2012/ImageSets/Main
        names |= _look_into(root, _annotations_below(names), ignore)
    names |= _look_into(root, _images_below(names), ignore)
    sketch = FolderSketch(names)
    telling = [*chain.from_iterable(_files_to_read(sketch, *wanted) for wanted in _HEADS.items())]
    unknown = [] if sketch.has_images else [*sketch.unknown_files.values()][:MOST_UNKNOWN]
    paths = [only] if only else [*telling[:MOST_HEADS], *unknown]
    heads = dict(
        zip(paths, storage.map_each(_read_head, (f"{root}/{name}" for name in paths)), strict=True)
    )
    archives = {}
    seen = () if sketch.has_images else sketch.all_ending(*ARCHIVE_ENDINGS, ".npz")
    for name in dict.fromkeys((*seen[:2], *seen[-1:])):
        archives[name], labels = _look_into_archive(f"{root}/{name}", ignore)
        heads |= {f"{name}/{ending}": label for ending, label in labels.items()}
    return FolderSketch(
        names, heads, archives, only, os.path.abspath(root) if storage.is_local(root) else root
    )


MOST_DEEPER = 96
"""Folders further down that are looked into; on stores, a quarter of them for all inputs."""

MOST_SIBLINGS = 16
"""Of these, folders in one folder."""


def look_deeper(sketch: FolderSketch, ignore: Ignore, inputs: int = 1) -> dict[str, Names]:
    """Returns the contents of some folders that the sketch only names, four levels down.

    Args:
        sketch: the input.
        ignore: as for `look_at_input`.
        inputs: how many inputs share the requests to a store.
    """
    left = MOST_DEEPER if storage.is_local(sketch.root) else MOST_DEEPER // 4 // inputs
    level, found = dict(sketch.names), dict[str, Names]()
    for _ in range(4):
        unseen = list[str]()
        for at, names in level.items():
            paths = (posixpath.join(at, each) for each in names.folders[:MOST_SIBLINGS])
            unseen += (path for path in paths if path not in sketch.names)
        level = _look_into(sketch.root, unseen[:left], ignore, MOST_DEEPER)
        left -= len(level)
        found |= level
    return found


def _annotations_below(names: Mapping[str, Names]) -> Iterator[str]:
    """Yields folders of annotations, and folders in them, that have not been looked into."""
    for folder in sorted(names):
        for each in names[folder].folders:
            of_annotations = {each.lower(), posixpath.basename(folder).lower()} & ANNOTATION_FOLDERS
            if folder and of_annotations and f"{folder}/{each}" not in names:
                yield f"{folder}/{each}"


def _images_below(names: Mapping[str, Names]) -> Iterator[str]:
    """Yields folders in a folder of images, such as `images/train`, next to annotations of all."""
    top = names[""]
    has_annotations = any(
        each.lower() in ANNOTATION_FOLDERS and not names[each].folders
        for each in top.folders
        if each in names
    )
    if not has_annotations and not top.ending(*TABLE_ENDINGS, ".xml", ".json"):
        return
    for folder in top.folders:
        if folder.lower() in IMAGE_FOLDERS and folder in names and not names[folder].images:
            yield from (f"{folder}/{each}" for each in names[folder].folders)


def _look_at_top(path: str, ignore: Ignore) -> tuple[str, Names, str]:
    """The root of the paths, its contents, and the file's name if the input is a single file."""
    folder = path.rstrip("/") or path
    top = _names_in(folder, "", ignore)
    if top != Names() or storage.size_of(path) is None:
        return folder, top, ""
    root, only = posixpath.dirname(path) or ".", posixpath.basename(path)
    if not only.lower().endswith((".json", ".xml", *TABLE_ENDINGS)):
        return root, Names((only,)), only
    top = _names_in(root, "", ignore)
    return root, Names((*top.images, only), top.folders), only


def _look_into(
    root: str, folders: Iterable[str], ignore: Ignore, most: int = MOST_FOLDERS
) -> dict[str, Names]:
    paths = {f"{root}/{folder}": folder for folder in islice(folders, most)}
    found = storage.map_each(lambda path: _names_in(path, paths[path], ignore), paths)
    return dict(zip(paths.values(), found, strict=True))


def _names_in(folder: str, below: str, ignore: Ignore) -> Names:
    """Returns the contents of a folder below the input.

    For a large folder on a store, these are the first names and the revealing ones.
    """
    entries = set(storage.folder_entries(folder, MOST_NAMES))
    if len(entries) >= MOST_NAMES and not storage.is_local(folder):
        entries.update(
            *in_parallel(
                lambda start: storage.folder_entries(folder, 10, start), REVEALING_PREFIXES
            )
        )
    prefix = f"{below}/" if below else ""

    def is_kept(name: str) -> bool:
        return normal_path(name) is not None and not ignore(
            prefix + name.rstrip("/"), name.endswith("/")
        )

    found = Names(tuple(sorted(name for name in entries if not name.endswith("/"))))
    others = sorted(set(found.files) - set(found.images))
    kept = (
        *sample_names(filter(is_kept, found.images), MOST_KEPT),
        *islice(filter(is_kept, others), MOST_KEPT),
    )
    folders = sorted(name for name in entries if name.endswith("/") and is_kept(name))
    return Names(tuple(sorted(kept)), tuple(name.rstrip("/") for name in folders))


def _rank(folder: str) -> tuple[bool, str]:
    """Returns a sort key that puts folders that reveal the layout first."""
    return folder.lower() not in ANNOTATION_FOLDERS | SPLIT_NAMES.keys() | {
        "images",
        "imagesets",
    }, folder


def _files_to_read(sketch: FolderSketch, endings: tuple[str, ...], most: int) -> Iterator[str]:
    """Yields the first files with these extensions in each folder.

    Those named after an image or a split come first, and before them Open Images' tables of boxes.
    """
    for folder, names in sketch.names.items():
        found = names.ending(*endings)
        beside = set(names.beside_images(endings[0]))
        for name in sorted(
            found, key=lambda name: (name not in beside, *_rank_by_name(name), name)
        )[:most]:
            yield f"{folder}/{name}" if folder else name


def _rank_by_name(name: str) -> tuple[bool, bool]:
    """Returns a sort key that puts files first whose names reveal the layout."""
    return not name.lower().endswith(BOXES_OF_OPEN_IMAGES), not begins_with_split(name)


def _read_head(uri: str) -> bytes:
    """Returns the first bytes of a file; empty if it cannot be read, which the job will report."""
    try:
        if uri.lower().endswith(".parquet"):
            return _columns_of(uri)
        most = JSON_HEAD_BYTES if uri.lower().endswith(".json") else HEAD_BYTES
        start = storage.read_range(uri, 0, most)
        head = _unpacked(start, uri)
        is_table = len(start) == HEAD_BYTES and uri.lower().endswith(TABLE_ENDINGS)
        if is_table and head.count(b"\n") < 2:
            head = _unpacked(storage.read_range(uri, 0, WIDE_HEAD_BYTES), uri)
        return head
    except (OSError, zlib.error, pa.ArrowException):
        return b""


def _unpacked(head: bytes, uri: str) -> bytes:
    """Unpacks the first bytes of a file as far as they are needed."""
    is_zlib = compression_of(head) == "zlib" and is_unknown_file(uri)
    if not is_zlib and not head.startswith(b"\x1f\x8b"):
        return head
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS if is_zlib else 31)
    return unpacker.decompress(head, WIDE_HEAD_BYTES)


def _columns_of(uri: str) -> bytes:
    """Returns the columns and the first rows of a Parquet file as CSV.

    Rows have the strings and numbers, and placeholders for bytes and boxes.
    """
    with storage.open_to_read(uri) as stream:
        table = pq.ParquetFile(stream)
        schema = table.schema_arrow
        texts = [
            each.name
            for each in schema
            if pa.types.is_string(each.type)
            or pa.types.is_large_string(each.type)
            or pa.types.is_integer(each.type)
            or pa.types.is_floating(each.type)
        ]
        held = [each.name for each in schema if not bytes_type_fault(pa.schema([each]), each.name)]
        rows = _first_rows(table, texts, PARQUET_ROWS) or [{}]
        if len(held) > 1:  # the first image of each says which are images
            rows[0] |= next(iter(_first_rows(table, held, 1)), {})

    def show_cell(column: pa.Field, row: Mapping[str, Any]) -> str | None:
        if column.name in held:
            cell = row.get(column.name)
            data = cell.get("bytes") if isinstance(cell, dict) else cell
            if data is not None and not sniff(data):
                return OTHER_BYTES
            return show_fields(HELD, fields_next_to_bytes(schema, column.name))
        if pa.types.is_nested(column.type):
            return _show_type(column, schema)
        value = row.get(column.name)
        names = class_names(schema, column.name)
        if isinstance(value, int) and 0 <= value < len(names):
            return names[value]
        return None if value is None else str(value)

    stream_of_text = io.StringIO()
    writer = csv.writer(stream_of_text)
    writer.writerow(schema.names)
    for row in rows:  # None becomes an empty cell
        writer.writerow([show_cell(each, row) for each in schema])
    return stream_of_text.getvalue().encode()


def _show_type(column: pa.Field, schema: pa.Schema) -> str | None:
    """Returns the placeholder for the cells of a column of lists or structs.

    Returns None for an empty cell.
    """
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    kind = column.type.value_type if is_list else column.type
    is_struct = pa.types.is_struct(kind)
    fields = [kind.field(at).name for at in range(kind.num_fields)] if is_struct else []
    if "bbox" in fields:
        return OBJECTS
    if is_struct and not is_list:
        return show_fields(STRUCT, fields)
    if not is_list:
        return None
    if not bytes_type_fault(pa.schema([pa.field("item", kind)]), "item"):
        return HELD_LIST
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if is_text or (not is_struct and class_names(schema, column.name)):
        return SEVERAL
    are_numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return NUMBERS if are_numbers else None


def _first_rows(table: pq.ParquetFile, columns: list[str], most: int) -> list[dict[str, Any]]:
    batch = next(table.iter_batches(batch_size=most, columns=columns), None) if columns else None
    return batch.to_pylist() if batch is not None else []


def _look_into_archive(uri: str, ignore: Ignore) -> tuple[FolderSketch, dict[str, bytes]]:
    """Returns the sketch of an archive, and its first `.cls` and `.json`, as WebDataset has them.

    They are empty if there are none, or if the JSON is long.
    """
    most: int | None = None
    if not uri.lower().endswith((".zip", ".npz")):
        most = MOST_MEMBERS_OF_TAR if storage.is_local(uri) else MOST_MEMBERS_ON_STORE
    names: list[str] = []
    in_folder: Counter[str] = Counter()
    labels = {".cls": b"", ".json": b""}
    with suppress(OSError, Rejected, tarfile.TarError, EOFError, zlib.error):
        for number, (name, read) in enumerate(islice(_members(uri), most)):
            if labels[".cls"] and number >= MOST_MEMBERS:  # samples are alike
                break
            folder = posixpath.dirname(name)
            in_folder[folder] += 1
            most_of_folder = MOST_MEMBERS if len(names) < MOST_KEPT else FEW_MEMBERS
            if in_folder[folder] > most_of_folder or any(
                ignore(path, path != name) for path in accumulate(name.split("/"), posixpath.join)
            ):
                continue
            names.append(name)
            ending = posixpath.splitext(name)[1]
            if labels.get(ending) == b"":
                labels[ending] = _read_label(read)
    return FolderSketch.of(names), labels


def _read_label(read: Callable[[], bytes]) -> bytes:
    """Returns a member of an archive; empty if it is too long for a label."""
    try:
        return read()[:JSON_HEAD_BYTES]
    except Rejected:
        return b""


def _members(uri: str) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yields an archive's members, each with a function that reads it.

    Of a packed archive, it yields only those near its start.
    """
    if uri.lower().endswith("gz"):
        most = 8 * PACKED_START if storage.is_local(uri) else PACKED_START
        start = io.BytesIO(storage.read_range(uri, 0, most))
        with tarfile.open(fileobj=start, mode="r|gz") as members:
            for member in members:
                if (stream := members.extractfile(member)) is not None:
                    yield member.name.removeprefix("./"), stream.read
        return
    file = ImageRef(uri, uri, *size_and_version(uri))
    limits = Limits(HEAD_BYTES, 10_000_000, MAX_RATIO)
    for found in list_members(file, limits):
        yield found.name, partial(read_image, found.place_in(file), JSON_HEAD_BYTES)
