"""`--discard`: deletes the unfinished work of earlier runs in an output folder."""

import itertools
from contextlib import suppress

from recordmill import storage
from recordmill.schemas.dataset.file_names import MARKER, STAGING_PREFIX, staging_names
from recordmill.schemas.errors import RecordmillError
from recordmill.storage.output_errors import explain_output_error
from recordmill.storage.versions import work_folders
from recordmill.transforms.planning.output_state import find_busy
from recordmill.transforms.publishing.publish_staged import publish_staged, roll_back


def discard_staging(output: str) -> list[str]:
    """Deletes the unfinished work of earlier runs in an output folder and its versions; returns one line about each.

    A complete dataset whose publishing was interrupted is published: half of it may already be in the output. If that
    is impossible, both halves are deleted.

    Raises:
        RecordmillError: a run on this machine is using it, or it cannot be deleted.
    """
    stagings = {folder: staging_names(storage.folder_names(folder)) for folder in work_folders(output)}
    if busy := next(filter(None, itertools.starmap(find_busy, stagings.items())), ""):
        raise RecordmillError(busy)
    try:
        return [_discard(folder, name) for folder, names in stagings.items() for name in names]
    except OSError as error:
        raise RecordmillError(explain_output_error(error, output)) from None


def _discard(output: str, name: str) -> str:
    staging, plan_id = storage.join(output, name), name.removeprefix(STAGING_PREFIX)
    pending, done = storage.join(staging, MARKER), f"deleted the unfinished work {name}"
    if storage.exists(pending):
        try:
            publish_staged(output, plan_id)
        except (OSError, ValueError) as error:
            done = f"deleted {name}, whose dataset was complete and cannot be published: {_why(error)}"
        else:
            return f"{name} held a complete dataset, whose publishing had been cut: it is now in place"
    if storage.exists(pending):
        with suppress(ValueError):  # its marker is unreadable: its files in the output are unknown
            roll_back(output, plan_id)
    storage.remove_folder(staging)
    return done


def _why(error: OSError | ValueError) -> str:
    if not isinstance(error, OSError) or not error.strerror:
        return " ".join(str(error).split())
    return f"{error.strerror.lower()} ({error.filename2 or error.filename})"
