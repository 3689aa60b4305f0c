"""What a publication that cannot be finished has put into an output goes back to its staging."""

from recordmill import storage
from recordmill.schemas.dataset.file_names import MARKER
from recordmill.schemas.dataset.json_values import MisfitError, from_json
from recordmill.schemas.dataset.marker import Marker, Switch
from recordmill.storage.dataset_files import DamagedMarkerError, read_marker_json, staging_folder
from recordmill.storage.many_files import force_to_disk, map_each, move_files


def read_pending(output: str, plan_id: str) -> tuple[Marker, Switch]:
    """The marker of the dataset that is complete in staging, and the moves that publish it.

    Raises:
        FileNotFoundError: none is.
        ValueError: it cannot be read.
    """
    staging = staging_folder(output, plan_id)
    marker, value = read_marker_json(staging)
    try:
        return marker, from_json(Switch, value.get("switch"))
    except MisfitError as misfit:
        raise DamagedMarkerError(f"{staging}/{MARKER} does not say how its dataset is published: {misfit}") from None


def roll_back(output: str, plan_id: str) -> None:
    """Leaves an output without the dataset that was being published, and without what that was to replace.

    The finished shards are in staging then, and no dataset is complete there: a run of the same plan takes them up
    again. Nothing is done where a marker stands in the output: either the switch has not touched it, or another run has
    finished it. Can be cut at any point: until the end the dataset is complete in both places together, and the next
    run finishes it.

    Raises:
        OSError: the files cannot be renamed either.
        ValueError: what was being published cannot be read.
    """
    _, switch = read_pending(output, plan_id)
    if storage.exists(storage.join(output, MARKER)):
        return
    staging, sidecars = staging_folder(output, plan_id), storage.join(output, "sidecars")
    waiting = set(storage.folder_names(staging))
    moved = {target: source for target, source in switch.targets.items() if source not in waiting}
    there = _files_among({*moved, *switch.removes}, output)
    move_files((storage.join(output, target), storage.join(staging, moved[target])) for target in there & moved.keys())
    storage.remove_files(storage.join(output, name) for name in there - moved.keys())
    if not storage.folder_names(sidecars):
        storage.remove_folder(sidecars)
    force_to_disk([staging, output])
    storage.remove_files([storage.join(staging, MARKER)])


def _files_among(names: set[str], output: str) -> set[str]:
    ordered = sorted(names)
    sizes = map_each(storage.size_of, (storage.join(output, name) for name in ordered))
    return {name for name, size in zip(ordered, sizes, strict=True) if size is not None}
