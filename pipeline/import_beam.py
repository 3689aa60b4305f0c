"""Imports Beam without the optional packages that a conversion of local files does not need."""

import logging
import sys

UNUSED_OF_BEAM = (
    "apache_beam.io.gcp.bigquery",  # and, with it, Pub/Sub
    "apache_beam.io.gcp.gcsfilesystem",
    "apitools",
    "bson",  # MongoDB
    "google.cloud.dataflow",
    "pandas",
)
"""Modules that Beam imports only where they are installed."""


def import_beam_for_local_files() -> None:
    """Imports `apache_beam` as if `UNUSED_OF_BEAM` were not installed, and shows them again.

    With the packages for Google Cloud installed, this takes half of the import's time and memory.
    User functions may import all of them afterward. Beam has no `gs://` file system in this process
    then; a table may still name images on a store, which Recordmill's own clients read.

    It is for a process that was started for one conversion of local files.
    """
    logging.getLogger("apache_beam.io.mongodbio").disabled = True  # warns that bson is missing
    absent = [name for name in UNUSED_OF_BEAM if name not in sys.modules]
    # The import of a module whose entry is None fails: Python's reference says so.
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        import apache_beam  # noqa: F401
    finally:
        for name in absent:
            del sys.modules[name]
