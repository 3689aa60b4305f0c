"""Refuses tables that are not understood, and inputs without any image."""

import posixpath
import re
import shlex
from collections.abc import Mapping
from typing import Any

from recordmill.pipeline.configuration.advise_input import find_files_around
from recordmill.pipeline.configuration.config import flags_of
from recordmill.pipeline.configuration.refuse_contradictions import find_branches
from recordmill.pipeline.configuration.written_settings import part_of
from recordmill.schemas.errors import UsageError
from recordmill.schemas.features import IMAGE_FIELDS, PIXEL_FIELDS
from recordmill.schemas.formatting import show_first
from recordmill.schemas.pages import find_page
from recordmill.transforms.inputs.file_roles import FileRole, role_of_name
from recordmill.transforms.inputs.folder_sketch import ARCHIVE_ENDINGS, FolderSketch, Names
from recordmill.transforms.inputs.image_suffixes import IMAGE_ENDINGS
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.sources.class_folders import likely_classes
from recordmill.transforms.inputs.tables.known_tables import (
    find_columns,
    has_header,
    holds_pixels,
    why_no_columns,
)
from recordmill.transforms.inputs.tables.read_table import TABLE_ENDINGS
from recordmill.transforms.inputs.tables.table_heads import head_of

_WORKBOOKS = (".xlsx", ".xls", ".ods")
_TABLES = (*TABLE_ENDINGS, *_WORKBOOKS)
# The import files of AutoML and Vertex AI.
_IMPORT_FILE = re.compile(rb'^"?(TRAIN|VALIDATION|TEST|UNASSIGNED)\b|"imageGcsUri"')
_ROWS = "--config configs/observations.yaml --set 'source.columns={}'"
_RESERVED = IMAGE_FIELDS - PIXEL_FIELDS
"""Names of columns that cannot be features of rows without images."""


def _refuse_pixels(place: str) -> UsageError:
    return UsageError(
        f"{place} holds images as columns or lists of numbers, which are not read from tables: "
        "save each row as an image in a folder of its class, such as 5/0001.png, or all rows in "
        "one .npz "
        f"({find_page('binaries.md')})"
    )


def _read_as_a_table() -> str:
    return (
        "write the paths of its images, from its own folder, into a column called path "
        f"({find_page('manifests.md')})"
    )


def has_table_around(sketch: FolderSketch) -> bool:
    """Returns whether a table is around the folder below which all images are."""
    whole, _ = find_branches(sketch)
    around = find_files_around(sketch, whole, sketch.ignored) if whole else []
    return any(path.lower().endswith(_TABLES) for path in around)


def refuse_pickles(top: Names, place: str) -> None:
    """Refuses CIFAR's Python version: reading a pickle could run any code."""
    ten, hundred = {"batches.meta", "test_batch"}, {"meta", "train", "test"}
    for names, name in ((ten, "cifar-10-binary"), (hundred, "cifar-100-binary")):
        if names <= set(top.files):
            raise UsageError(
                f"{place} holds CIFAR's Python version, whose pickles are not read: download and "
                f"unpack the binary version ({name}.tar.gz), and convert that"
            )


def refuse_files(sketch: FolderSketch, place: str) -> None:
    """Refuses inputs in which no file has the extension of an image."""
    top = sketch.top
    endings = {posixpath.splitext(name)[1].lower() for name in top.files}
    if "" in endings or endings & set(IMAGE_ENDINGS):
        return
    are_tables = all(name.lower().endswith(TABLE_ENDINGS) for name in top.files)
    if are_tables and any(holds_pixels(name, sketch) for name in top.files):
        raise _refuse_pixels(place)
    advice = (
        f"{_read_as_a_table()}, or add {_ROWS} if there are no images"
        if are_tables
        else "pass the folder to convert as --input, or describe it with --config"
    )
    if role_of_name(top.files[0]) == FileRole("array") and not top.ending(".npz", ".npy"):
        advice = "such arrays are not read: save their images as files, such as PNG"
    if archives := top.ending(*ARCHIVE_ENDINGS):
        advice = f"unpack {show_first(archives)}, since only images are read from archives"
    raise UsageError(f"{place} holds no image, only files such as {top.files[0]}: {advice}")


def has_tables(sketch: FolderSketch) -> bool:
    """Returns whether a table of images is among the files that were looked into."""
    return any(find_columns(path, sketch) for path in sketch.heads if path.endswith(TABLE_ENDINGS))


def refuse_tables(sketch: FolderSketch, place: str, written: Mapping[str, Any]) -> None:
    """Refuses a table that is not understood, since its labels would be lost.

    It is accepted if folders are several classes.
    """
    is_alone = (sketch.top.folders or sketch.has_images) and len(likely_classes(sketch)) < 2
    paths = [sketch.only] if sketch.only else sketch.all_ending(*_TABLES)
    paths = [path for path in paths if is_alone or _IMPORT_FILE.search(sketch.heads.get(path, b""))]
    tables = [path for path in paths if path.lower().endswith(_TABLES) and "submission" not in path]
    if not tables:
        return
    table = next((path for path in tables if path in sketch.heads), tables[0])
    is_workbook = table.lower().endswith(_WORKBOOKS)
    why = "workbooks are not read: save it as CSV" if is_workbook else why_no_columns(table, sketch)
    what = f"is not understood as a table of images ({why})"
    if sketch.only and holds_pixels(table, sketch):
        raise _refuse_pixels(place)
    if sketch.only:
        raise UsageError(
            f"{place} {what}: {_read_as_a_table()}, or add {_ROWS} if there are no images"
        )
    others = [path for path in tables if path != table and not find_columns(path, sketch)]
    left_out = [*sketch.ignored, *(f"/{escape_glob(path)}" for path in (table, *others))]
    which = f"it and {show_first(others)}" if others else "it"
    leave_out = f"leave {which} out with {flags_of({'ignore': left_out})}"
    ways = [_read_as_a_table(), leave_out]
    if has_header(table, sketch) and not _RESERVED & set(head_of(table, sketch).header):
        where = f"--input {shlex.quote(f'{place}/{table}')}"
        splits = part_of(written, "splits")
        given = [key for key in ("from_folders", "from_source") if splits.get(key)]
        without = "".join(f" --set splits.{key}={{}}" for key in given)
        ways.insert(1, f"use {where} {_ROWS}{without} to convert its rows alone")
    how = ", or ".join(ways)
    raise UsageError(f"{place}/{table} {what}, and its labels would be lost: {how}")
