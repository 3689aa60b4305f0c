"""Cuts the publication of a dataset at one of its moments."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from recordmill import storage

_SWITCHING = ("publish_staged", "_replace_files", "move_files", "remove_staging", "point_to")


def raise_cut() -> NoReturn:
    """Fails, as a bug would."""
    raise RuntimeError("cut")


def kill_self() -> None:
    """Ends the process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def cut_switch(name: str, count: int, end: Callable[[], object] = raise_cut) -> Iterator[None]:
    """In the block, a publication calls `end` instead of its `count`-th call of a function of
    `storage`."""
    calls, original = [], getattr(storage, name)

    def cut(*arguments: Any) -> Any:
        caller = sys._getframe(1).f_code.co_qualname.partition(".")[0]
        if caller in _SWITCHING:
            calls.append(arguments)
            if len(calls) == count:
                end()
        return original(*arguments)

    setattr(storage, name, cut)
    try:
        yield
    finally:
        setattr(storage, name, original)
