"""Recognises what interrupted runs leave in a folder: valid shards, but no marker."""

from collections.abc import Collection

from recordmill import storage
from recordmill.schemas.dataset.file_names import DUPLICATES, MARKER, REJECTED, staging_names


def find_unfinished(folder: str, names: Collection[str]) -> str:
    """A sentence about a folder without a marker; the empty string if there is no trace of a run.

    Args:
        folder: its path.
        names: the names of the files and folders in it.
    """
    for staging in staging_names(sorted(names)):
        if storage.exists(storage.join(folder, staging, MARKER)):
            left = f"{staging} with a complete dataset, because a publishing was cut or is under way"
            advice = "run the same command again to finish it"
        else:
            left = f"{staging} with the work of a run that failed, was cut or is under way"
            advice = "run its command again, corrected if it failed"
        return f"{folder} holds no {MARKER} but {left}: {advice}"
    lists = [name for name in (REJECTED, DUPLICATES) if name in names]
    if "sidecars" in names and lists:
        return (
            f"{folder} holds no {MARKER} but sidecars/ and {lists[0]}, because a publishing was cut or the file was "
            "lost: run the command that made the dataset again, or name the files alone by a pattern in quotes"
        )
    return ""
