import errno
import threading

import pytest

from recordmill.pipeline.configuration.preflight import call_with_timeout


def test_results_and_exceptions_of_a_function_pass_through():
    assert call_with_timeout(lambda: 3, 60) == 3
    with pytest.raises(ZeroDivisionError):
        call_with_timeout(lambda: 1 // 0, 60)


def test_the_timeout_that_a_function_raises_keeps_its_reason():
    def time_out():
        raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    with pytest.raises(TimeoutError) as caught:
        call_with_timeout(time_out, 60)
    assert caught.value.strerror == "Connection timed out"


def test_a_function_that_does_not_return_is_not_waited_for():
    late = threading.Event()
    with pytest.raises(TimeoutError, match=r"^no answer in 0 s$"):
        call_with_timeout(late.wait, 0.05)
    late.set()
