"""Refuses several versions or configurations of one collection, which would be added up."""

import posixpath
import re
import shlex
from collections import defaultdict
from collections.abc import Sequence

from recordmill.pipeline.configuration.config import flags_of
from recordmill.pipeline.configuration.refuse_contradictions import MOST_SHOWN, show_folders
from recordmill.schemas.dataset.file_names import MARKER
from recordmill.schemas.errors import UsageError
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized, split_for_word
from recordmill.transforms.inputs.patterns import compile_globs
from recordmill.transforms.inputs.sources.tfrecords import Tfrecords
from recordmill.transforms.inputs.tables.read_table import TABLE_ENDINGS


def refuse_versions(sketch: FolderSketch, place: str, found: Recognized | None) -> None:
    """Refuses folders that hold tables or TFRecords of the same names for the same splits.

    Hugging Face's configurations and TFDS's versions are such folders.

    Args:
        sketch: the input.
        place: the input's path.
        found: its layout; None if it is not recognized.

    Raises:
        UsageError: there are such folders; the text has the commands that may be meant.
    """
    if found is None or MARKER in sketch.top.files:  # an output of ours is asked about by name
        return
    folders: dict[str, dict[tuple[str, bytes], str]] = defaultdict(dict)
    for path in _list_files(sketch, found.kind):
        *above, name = path.split("/")
        others = [each for each in above if not split_for_word(each)]
        if len(others) < len(above) or _names_split(name):
            form = "/".join((*filter(split_for_word, above), re.sub("[0-9]+", "0", name)))
            header = b""
            if found.kind == "manifest":
                header = sketch.heads.get(path, b"").partition(b"\n")[0]
            folders["/".join(others)][form, header] = name
    for own in folders.values():
        same = [
            folder
            for folder, other in folders.items()
            if own.keys() <= other.keys() or other.keys() <= own.keys()
        ]
        if len(same) > 1 and all(same):
            _refuse(sorted(same), min(own.values()), place, found)


def _list_files(sketch: FolderSketch, kind: str) -> list[str]:
    """Returns the paths of the tables or TFRecord files that were seen; empty for other layouts."""
    paths = [
        posixpath.join(folder, name)
        for folder, names in {**sketch.deeper, **sketch.names}.items()
        for name in names.files
    ]
    if kind == "manifest":
        return [path for path in paths if path.lower().endswith(TABLE_ENDINGS)]
    if kind == "tfrecords":
        return [*filter(compile_globs(Tfrecords.files).match_file, paths)]
    return []


def _names_split(name: str) -> bool:
    """Returns whether a file's name has a word for a split: `train-00000-of-00001.parquet`."""
    return any(map(split_for_word, re.findall("[A-Za-z]+", name)))


def _refuse(folders: Sequence[str], example: str, place: str, found: Recognized) -> None:
    places = [shlex.quote(f"{place}/{each}") for each in folders[:MOST_SHOWN]]
    alone = " or ".join(f"--input {each}" for each in places)
    raise UsageError(
        f"{place}: {show_folders(folders)} hold files of the same names for the same splits, such "
        f"as {example}, as versions and configurations of one collection do: to convert one of "
        f"them, use {alone}; to add up all of them, add {flags_of(found.settings)}"
    )
