"""`recordmill diff PATH OTHER`: compares two datasets, or a dataset and a folder of images."""

import argparse
import hashlib
import posixpath
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from recordmill import storage
from recordmill.pipeline.command import reader_parser, run_reader
from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.configuration.options import Parser
from recordmill.pipeline.configuration.preflight import (
    find_folder,
    read_corrections,
    read_exclusions,
)
from recordmill.pipeline.configuration.resolve_settings import resolve_settings
from recordmill.pipeline.terminal import make_console
from recordmill.reading.compare_datasets import (
    KINDS,
    Comparison,
    RowObject,
    compare_datasets,
    compare_rows,
    judge_of,
    name_annotations,
    read_entries,
    seed_of,
    sort_entries,
)
from recordmill.reading.dataset import Dataset, open_dataset
from recordmill.schemas.dataset.file_names import CONFIGURATION, MARKER, REJECTED, staging_names
from recordmill.schemas.earlier_names import with_earlier_keys
from recordmill.schemas.errors import DONE, FAILED, WRONG_USAGE, LoadError
from recordmill.schemas.formatting import format_count, printable
from recordmill.schemas.image_ref import ClassNames, ImageRef, Notice
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.source import Input
from recordmill.storage.dataset_files import version_names

EPILOG = """\
examples:
  whether a dataset has the images of a folder:
    %(prog)s dataset photos
  what differs between two datasets:
    %(prog)s dataset resized

Rows are matched by key. Only the metadata of datasets is read, and records whose annotations may \
differ; the images of a folder are not decoded.

exit codes: 0 no differences   1 differences   2 wrong usage, or something cannot be read   \
130 interrupted
"""


def main(argv: Sequence[str] | None = None, prog: str = "python -m pipeline.diff") -> int:
    """Compares a dataset with another one, or with a folder, and reports how they differ.

    Args:
        argv: the flags; by default, those of the process.
        prog: what the user typed before them.

    Returns:
        The exit code.
    """
    return run_reader(make_parser(prog), argv, _diff, failed=WRONG_USAGE)


def make_parser(prog: str) -> Parser:
    """Returns the parser of this command."""
    description = "Compares two datasets of Recordmill, or a dataset and a folder of images."
    parser = reader_parser(prog, description, "a dataset's folder", EPILOG)
    parser.add_argument("other", metavar="OTHER", help="another dataset, or a folder of images")
    return parser


def _diff(flags: argparse.Namespace) -> dict[str, Any]:
    before = open_dataset(flags.path)
    marker = before.require_marker()
    notes = []
    if _is_dataset(flags.other):
        found = compare_datasets(before, open_dataset(flags.other))
    else:
        seed = seed_of(marker)
        entries = sort_entries(_read_folder(before, flags.other), seed)
        found = compare_rows(read_entries(before, seed), entries, judge_of(marker, marker))
        if not found.rows[1] and find_folder(flags.other, flags.other, here=True) != flags.other:
            raise LoadError(
                f"no image was read from the file {flags.other}: name a folder of images or a "
                "dataset"
            )
        what = (
            f"the images in {flags.other} were not decoded, nor filtered or limited, and what is "
            "drawn on them is not compared"
        )
        listed = any(entry.listed for entry in marker.annotations.values())
        if listed or not found.is_same:
            notes.append(f"{what}: for an exact answer, convert it and compare the datasets")
    _report(found, marker.unit, notes, make_console(quiet=flags.quiet))
    status, exit_code = "different", FAILED
    if found.is_same:
        status, exit_code = "same", DONE
    line = {
        "status": status,
        "exit_code": exit_code,
        "rows": found.rows,
        "unchanged": found.unchanged,
        **{kind: found.counts[kind] for kind in KINDS},
        "annotation_kinds": dict(sorted(found.annotations.items())),
        "examples": with_earlier_keys(found.examples),
        "settings": found.settings,
        "notes": notes,
    }
    return with_earlier_keys(line)


def _is_dataset(path: str) -> bool:
    """Returns whether a folder has a dataset, its versions, or the unfinished work of a run."""
    if staging_names([posixpath.basename(path.rstrip("/"))]):
        return True
    markers = [MARKER, *(f"{name}/{MARKER}" for name in version_names(path))]
    return any(storage.exists(storage.join(path, each)) for each in markers)


def _read_folder(dataset: Dataset, folder: str) -> Iterator[tuple[str, str | None, RowObject]]:
    """Yields key, split, class and digest of each image that a conversion would read.

    The split is None if it is not given.
    """
    # Imports Beam, which other comparisons do not need.
    from recordmill.transforms.list_images import list_images
    from recordmill.transforms.records.exclude_images import find_lines

    marker = dataset.require_marker()
    if "" not in marker.run.inputs:
        raise LoadError(
            f"{dataset.folder} was made of inputs with names: convert {folder} and compare the "
            "datasets"
        )
    loaded = load_settings(storage.join(dataset.folder, CONFIGURATION), ()).settings
    settings = resolve_settings(loaded, [Input(folder)], dataset.folder, lambda note: None)
    exclusions = read_exclusions(settings.exclude)
    corrections = read_corrections(settings.corrections)
    labels = LabelMap(
        dict(marker.labels), settings.labels.catch_all, renamed=settings.labels.rename
    )
    rejected = {(line.get("key"), line["sha256"]) for line in dataset.lines(REJECTED)}
    for ref in list_images(Input(folder), settings.source, settings.listing):
        if isinstance(ref, Notice) and ref.status == "fatal":
            raise LoadError(f"{folder} cannot be compared: {ref.detail}")
        if (
            isinstance(ref, ClassNames)
            and ref.numbers
            and not labels.numbers.keys() >= set(ref.names)
        ):
            labels = replace(
                labels, numbers={**labels.numbers, **dict(zip(ref.names, ref.numbers, strict=True))}
            )
        if type(ref) is not ImageRef:
            continue
        try:
            content = settings.source.read(ref, settings.images.max_bytes)
        except Rejected:
            continue
        label = ref.label if content.label is None else content.label
        digest = hashlib.sha256(content.data).hexdigest()
        if labels.is_renamed_away(label):
            continue
        excluding = find_lines(ref, digest, exclusions, settings.images.max_bytes)
        if (ref.key, digest) in rejected or excluding:
            continue
        if corrections.judge(ref.key, digest) == "corrected":
            label = corrections.by_key[ref.key].class_name
        name = labels.name_for(label) or labels.shown(label) or None
        yield ref.key, ref.split or None, {"class": name, "sha256": digest}


def _report(found: Comparison, unit: str, notes: Sequence[str], console: Console) -> None:
    """Prints each kind of difference with examples, and a verdict."""
    for kind, meaning in KINDS.items():
        if count := found.counts[kind]:
            title = f"{meaning}: {format_count(count, unit)}"
            if kind == "annotations" and found.annotations:
                title += f" ({_show_annotations(found)})"
            console.print(title, style="bold")
            for example in found.examples[kind]:
                console.print(f"  {printable(example)}")
            if count > len(found.examples[kind]):
                console.print(f"  and {count - len(found.examples[kind]):,} more")
    for setting in found.settings:
        console.print(f"setting {printable(setting)}")
    for note in notes:
        console.print(f"note: {note}")
    verdict = "no differences" if found.is_same else "they differ"
    console.print(f"{verdict}: {format_count(found.rows[0], unit)} before, {found.rows[1]:,} after")


def _show_annotations(found: Comparison) -> str:
    """Returns how many images have other annotations of each kind."""
    counts = found.annotations
    return ", ".join(f"{name_annotations(kind)} {count:,}" for kind, count in counts.most_common())


if __name__ == "__main__":
    sys.exit(main())
