"""Keeps the messages of Beam and Pillow from the terminal while a conversion or a command works.

What matters in them is reported in one sentence.
"""

import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from recordmill.schemas.pillow_warnings import ignore_pillow_warnings

_LOGGERS = ("apache_beam", "PIL")


@contextmanager
def show_libraries(verbose: bool) -> Iterator[None]:
    """Shows the messages of libraries within the block if they were asked for; else, mutes them."""
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
        yield
    else:
        with quiet_libraries(), _quiet_process():
            yield


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Mutes Beam and Pillow within the block.

    Their loggers and the filters of warnings are then as they were before.
    """
    levels = {logging.getLogger(name): logging.getLogger(name).level for name in _LOGGERS}
    for logger in levels:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            ignore_pillow_warnings()
            yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


@contextmanager
def _quiet_process() -> Iterator[None]:
    """Mutes what Beam says as the whole process, within the block of a command.

    In `recordmill.convert`, the process is the user's, who may log in the same way.
    """
    root, hook = logging.getLogger(), threading.excepthook

    def report(error: threading.ExceptHookArgs) -> None:
        # Beam's threads raise gRPC errors when a runner closes the connection, as at the end of
        # every job.
        if error.exc_type.__module__.partition(".")[0] != "grpc":
            hook(error)

    def drop(_: logging.LogRecord) -> bool:
        return False

    # Beam logs on the root logger that an extra is missing, and a job server's output; a filter
    # there sees only that, not other loggers.
    root.addFilter(drop)
    threading.excepthook = report
    try:
        yield
    finally:
        threading.excepthook = hook
        root.removeFilter(drop)
