"""Object stores, asked before any work: whether their clients are installed, and whether they answer."""

import queue
import threading
from importlib.util import find_spec
from typing import Any

from recordmill import storage

SECONDS_TO_ANSWER = 30.0
"""How long a store may take for its first answer; its client would go on for minutes, and so would the job."""

_CLIENTS = {"gs": ("gcp", "google.cloud.storage"), "s3": ("aws", "boto3")}


def find_missing_extra(path: str) -> str:
    """The extra that has the client of a path's store, where that is not installed; else the empty string."""
    extra, client = _CLIENTS.get(path.partition("://")[0], ("", ""))
    try:
        missing = bool(extra) and find_spec(client) is None
    except ModuleNotFoundError:  # nor is what it lies in
        missing = True
    return extra if missing else ""


def describe_with_timeout(path: str) -> Any:
    """What `storage.describe` says of a file.

    Raises:
        TimeoutError: it says nothing in `SECONDS_TO_ANSWER`.
        Exception: whatever `storage.describe` raises.
    """
    answers: queue.Queue[tuple[Any, Exception | None]] = queue.Queue()

    def ask() -> None:
        try:
            answers.put((storage.describe(path), None))
        except Exception as error:  # noqa: BLE001  # raised where the answer is waited for
            answers.put((None, error))

    threading.Thread(target=ask, daemon=True, name="recordmill-ask").start()
    try:
        found, error = answers.get(timeout=SECONDS_TO_ANSWER)
    except queue.Empty:
        raise TimeoutError(f"no answer in {SECONDS_TO_ANSWER:.0f} s") from None
    if error is not None:
        raise error
    return found
