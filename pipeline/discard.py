"""`--discard`: what earlier runs have left unfinished in an output folder goes."""

from pipeline.preflight import PlaceError
from transforms.converting.shard_files import STAGING_PREFIX
from transforms.files import storage
from transforms.planning.claim import find_busy, staging_names
from transforms.planning.output_state import MARKER
from transforms.publishing.switch_dataset import switch_dataset


def discard_staging(output: str) -> list[str]:
    """Deletes the unfinished work of earlier runs in an output folder; gives a line for people on each.

    A dataset that is complete there, whose publishing was cut, is published: half of it may be in the output already.

    Raises:
        PlaceError: a run of this machine is at work there.
    """
    told = []
    stagings = staging_names(storage.folder_names(output))
    if busy := find_busy(output, stagings):
        raise PlaceError(busy)
    for name in stagings:
        staging = storage.join(output, name)
        if storage.exists(storage.join(staging, MARKER)):
            switch_dataset(output, name.removeprefix(STAGING_PREFIX))
            told.append(f"{name} held a complete dataset, whose publishing had been cut: it is now in place")
        else:
            storage.remove_folder(staging)
            told.append(f"deleted the unfinished work {name}")
    return told
