"""Finds the store of a URL.

Beam's file systems make a client for every call (85 ms of CPU on S3, a new connection on GCS), ask for an object's size
before they read it, and read 16 MiB for any range. Here one client serves a process, and a range is one
request. Stores without a class here are used through Beam.
"""

import threading
from functools import lru_cache

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from recordmill.storage.stores.beam import BeamStore, file_system_options
from recordmill.storage.stores.store import Store

_lock = threading.Lock()
_BEAM = BeamStore()


def find_store(uri: str) -> Store:
    """This process's store for a URL."""
    scheme = FileSystems.get_scheme(uri)
    if scheme not in ("gs", "s3"):
        return _BEAM
    with _lock:
        return _make_store(scheme, file_system_options())


@lru_cache(maxsize=2)
def _make_store(scheme: str, set_options: PipelineOptions | None) -> Store:
    options = set_options or PipelineOptions([])
    try:
        if scheme == "gs":
            from recordmill.storage.stores.google_store import GoogleStore

            return GoogleStore(options)
        from recordmill.storage.stores.amazon_store import AmazonStore

        return AmazonStore(options)
    except ImportError:  # Beam says which of its extras is missing
        return _BEAM
