"""`transform_fn/`: publishes the analysis of a finished dataset, and checks whether it still matches.

The marker does not list the folder, so it can be made, replaced and deleted without touching the dataset. Its note,
`analysis.json`, says which shards were analysed. Publishing another dataset removes the folder.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from recordmill import storage
from recordmill.schemas.dataset.file_names import TRANSFORM_FN
from recordmill.schemas.dataset.json_values import as_json, hash_json
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.errors import RecordmillError

DEFAULT_SIZE = (224, 224)
"""Height and width of the model's images if the dataset's images have several sizes."""

NOTE = "analysis.json"
_MODEL = "saved_model.pb"


def contents_digest(marker: Marker, split: str) -> str:
    """The hex digest of what an analysis of one split depends on: the rows of its sidecars and the label map.

    The plan id is not enough: it stays the same if an image is edited in place.
    """
    labels = marker.plan.settings.labels.get("catch_all"), marker.labels
    shards = [shard.sidecar_sha256 for shard in marker.splits[split].shards]
    return hash_json([labels, shards])


def read_note(output: str) -> dict[str, Any] | None:
    """The note of a dataset's `transform_fn/`; None if there is none, or it is incomplete."""
    folder = storage.join(output, TRANSFORM_FN)
    if not storage.exists(storage.join(folder, _MODEL)):
        return None
    try:
        note: Any = orjson.loads(storage.read_range(storage.join(folder, NOTE)))
    except (FileNotFoundError, orjson.JSONDecodeError):
        return None
    return note if isinstance(note, dict) and note.keys() >= {"split", "size", "contents"} else None


def fits(
    note: Mapping[str, Any] | None, marker: Marker, split: str | None = None, size: tuple[int, int] | None = None
) -> bool:
    """Whether a note's analysis belongs to the dataset that a marker describes.

    Args:
        note: the result of `read_note`.
        marker: the dataset's.
        split: the split that should have been analysed; None for any.
        size: the height and width that its model should give; None for any.
    """
    if note is None or note["split"] not in marker.splits:
        return False
    if split not in (None, note["split"]) or size not in (None, tuple(note["size"])):
        return False
    return bool(note["contents"] == contents_digest(marker, note["split"]))


def remove_stale(output: str, marker: Marker) -> None:
    """Removes a `transform_fn/` that does not belong to the marker's dataset; other programs' folders stay."""
    folder = storage.join(output, TRANSFORM_FN)
    if storage.exists(storage.join(folder, NOTE)) and not fits(read_note(output), marker):
        _remove(folder)


def publish_transform_fn(built: Path, note: Mapping[str, Any], output: str) -> None:
    """Installs a finished SavedModel with its note, replacing any earlier `transform_fn/`.

    The model itself is deleted first and written last, so readers see the old one, then none, and then the new one.

    Args:
        built: a local folder with the SavedModel.
        note: written next to it as `analysis.json`.
        output: the dataset's folder.

    Raises:
        RecordmillError: there is a folder of that name that Recordmill did not write.
        OSError: it cannot be written.
    """
    target = storage.join(output, TRANSFORM_FN)
    if storage.exists(storage.join(target, _MODEL)) and not storage.exists(storage.join(target, NOTE)):
        raise RecordmillError(f"{target} was not written by Recordmill: move it elsewhere")
    _remove(target)
    storage.write_file(storage.join(target, NOTE), as_json(note))
    files = [path for path in built.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: path.name == _MODEL):
        storage.write_file(storage.join(target, *path.relative_to(built).parts), path.read_bytes())


def _remove(folder: str) -> None:
    storage.remove_files([storage.join(folder, _MODEL)])
    storage.remove_folder(folder)
