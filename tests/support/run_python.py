"""Runs a command of the documentation in this process, which has imported Beam and TensorFlow
already."""

import io
import os
import runpy
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from recordmill.pipeline.run import main


def run_python(words: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Runs `recordmill ...`, `python -m MODULE ...` or `python SCRIPT ...` in a folder.

    Returns:
        What a process of its own would have returned.
    """
    program, *argv = words
    run: Callable[[], object]
    if program == "recordmill":
        argv, run = list(words), main
    elif argv[0] == "-m":
        argv = argv[1:]
        run = lambda: runpy.run_module(argv[0], run_name="__main__", alter_sys=True)  # noqa: E731
    else:
        run = lambda: runpy.run_path(argv[0], run_name="__main__")  # noqa: E731
    written = _Written(), _Written()
    outputs = [io.TextIOWrapper(each, encoding="utf-8", write_through=True) for each in written]
    with (
        _like_a_new_process(folder, argv),
        redirect_stdout(outputs[0]),
        redirect_stderr(outputs[1]),
    ):
        code = _exit_code(run)
    stdout, stderr = (each.getvalue().decode() for each in written)
    return subprocess.CompletedProcess(words, code, stdout, stderr)


class _Written(io.BytesIO):
    """Keeps what was written when the stream is closed, as `json.tool` closes its own."""

    def close(self) -> None:
        pass


@contextmanager
def _like_a_new_process(folder: Path, argv: list[str]) -> Iterator[None]:
    """Sets what a script reads of its process, and undoes what it changes."""
    modules, handler = set(sys.modules), signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("default")  # pytest makes errors of them
        patch.chdir(folder)
        patch.setattr(sys, "argv", argv)
        patch.setenv("COLUMNS", "120")
        patch.syspath_prepend(str(folder))
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, handler)
    for name in set(sys.modules) - modules:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(f"{folder}{os.sep}"):
            del sys.modules[name]  # another folder may hold another module of this name


def _exit_code(run: Callable[[], object]) -> int:
    try:
        run()
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
            return 1
        return end.code or 0
    except Exception:  # noqa: BLE001  # a new process would show any
        traceback.print_exc()
        return 1
    return 0
