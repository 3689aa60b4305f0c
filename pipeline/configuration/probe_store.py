"""Checks before any work that the clients of object stores are installed, and that stores answer."""

import queue
import threading
from importlib.util import find_spec
from typing import Any

from recordmill import storage

SECONDS_TO_ANSWER = 30.0
"""How long a store may take to answer; its client, and so the job, would retry for minutes."""

_CLIENTS = {"gs": ("gcp", "google.cloud.storage"), "s3": ("aws", "boto3")}


def find_missing_extra(path: str) -> str:
    """The extra with the client of a path's store if that is not installed; otherwise the empty string."""
    extra, client = _CLIENTS.get(path.partition("://")[0], ("", ""))
    try:
        missing = bool(extra) and find_spec(client) is None
    except ModuleNotFoundError:  # nor is its parent
        missing = True
    return extra if missing else ""


def describe_with_timeout(path: str) -> Any:
    """Calls `storage.describe` with a timeout.

    Raises:
        TimeoutError: no answer within `SECONDS_TO_ANSWER`.
        Exception: whatever `storage.describe` raises.
    """
    answers: queue.Queue[tuple[Any, Exception | None]] = queue.Queue()

    def ask() -> None:
        try:
            answers.put((storage.describe(path), None))
        except Exception as error:  # noqa: BLE001  # raised by the caller's thread
            answers.put((None, error))

    threading.Thread(target=ask, daemon=True, name="recordmill-ask").start()
    try:
        found, error = answers.get(timeout=SECONDS_TO_ANSWER)
    except queue.Empty:
        raise TimeoutError(f"no answer in {SECONDS_TO_ANSWER:.0f} s") from None
    if error is not None:
        raise error
    return found
