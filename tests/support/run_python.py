"""Runs what follows `python` on a command line in this process, which has imported Beam and TensorFlow already."""

import io
import os
import runpy
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest


def run_python(words: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Runs `-m MODULE ARGUMENTS` or `SCRIPT ARGUMENTS` in a folder, and returns what a process of its own would return."""
    outputs = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in ("stdout", "stderr")]
    is_module = words[0] == "-m"
    target, *arguments = words[1:] if is_module else words
    with _like_a_new_process(folder, [target, *arguments]), redirect_stdout(outputs[0]), redirect_stderr(outputs[1]):
        if is_module:
            code = _exit_code(lambda: runpy.run_module(target, run_name="__main__", alter_sys=True))
        else:
            code = _exit_code(lambda: runpy.run_path(target, run_name="__main__"))
    stdout, stderr = (each.buffer.getvalue().decode() for each in outputs)
    return subprocess.CompletedProcess(["python", *words], code, stdout, stderr)


@contextmanager
def _like_a_new_process(folder: Path, argv: list[str]) -> Iterator[None]:
    """Sets what a script reads of its process, and undoes what it changes."""
    modules, handler = set(sys.modules), signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
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
    except Exception:
        traceback.print_exc()
        return 1
    return 0
