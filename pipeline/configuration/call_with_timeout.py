"""Calls a function that may never return."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def call_with_timeout(function: Callable[[], Result], seconds: float) -> Result:
    """What a function returns or raises.

    Raises:
        TimeoutError: it has done neither within `seconds`; its thread may go on until the process ends.
    """
    answer: Future[Result] = Future()

    def call() -> None:
        try:
            answer.set_result(function())
        except Exception as error:  # noqa: BLE001  # raised by the caller's thread
            answer.set_exception(error)

    threading.Thread(target=call, daemon=True, name="recordmill-call").start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        if answer.done():
            raise
        raise TimeoutError(f"no answer in {seconds:.0f} s") from None
