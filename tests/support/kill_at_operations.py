"""Kills runs with SIGKILL before chosen file operations below their outputs.

`main` first lets a run work on a copy of the output to its end, and counts its operations: files
opened for writing, renamed, linked and deleted, folders made and deleted. Then it kills runs, each
on another copy, before operations that are spread evenly from the first to the last. The copies are
`OUTPUT-all`, `OUTPUT-00`, `OUTPUT-01`, ...
"""

import json
import os
import shutil
import signal
import sys
from collections import Counter
from threading import Lock
from typing import Any

import apache_beam.runners.direct.direct_runner  # noqa: F401  # once for all runs, which are forked

from recordmill.pipeline import attempt as _attempt  # noqa: F401
from recordmill.pipeline import attempt as _discard  # noqa: F401
from recordmill.pipeline import runners as _run_job  # noqa: F401
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.reading.report import write_report as _write_report  # noqa: F401
from recordmill.transforms import publish_dataset as _publish_dataset  # noqa: F401
from recordmill.transforms import write_with_beam as _write_with_beam  # noqa: F401

_PATHS = {"open": 1, "os.rename": 2, "os.link": 2, "os.remove": 1, "os.mkdir": 1, "os.rmdir": 1}
"""Audit events of file operations, and how many paths each has first:
https://docs.python.org/3/library/audit_events"""


def _is_operation(output: str, event: str, arguments: tuple[Any, ...]) -> bool:
    if event not in _PATHS or (event == "open" and not _writes(arguments)):
        return False
    folder = ""
    # shutil.rmtree names files below open folders.
    if event in ("os.remove", "os.rmdir") and arguments[1] >= 0:
        folder = os.readlink(f"/proc/self/fd/{arguments[1]}")
    paths = [
        os.path.join(folder, os.fsdecode(each))
        for each in arguments[: _PATHS[event]]
        if not isinstance(each, int)
    ]
    return any(os.path.abspath(path).startswith(f"{output}/") for path in paths)


def _writes(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = arguments
    return bool((flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) or not set(
        mode or ""
    ).isdisjoint("wax+")


def _run_child(output: str, flags: list[str], fatal: int, report: int) -> None:
    """Runs a conversion and kills itself before its `fatal`-th operation; else writes all
    operations to `report`."""
    done: list[str] = []
    lock = Lock()

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if _is_operation(output, event, arguments):
            with lock:
                done.append(event)
                if len(done) == fatal:
                    os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    code = launch([f"--output={output}", *flags], build)
    os.write(report, json.dumps(done).encode())
    os._exit(code)


def main(kills: int, output: str, flags: list[str]) -> None:
    """See the module; a line of JSON on stdout counts the operations by kind."""
    operations: list[str] = []
    for number in range(-1, kills):
        place = f"{output}-{number:02}" if operations else f"{output}-all"
        shutil.copytree(output, place)
        fatal = 1 + round(number * (len(operations) - 1) / (kills - 1)) if operations else 0
        read, write = os.pipe()
        if not (child := os.fork()):
            with open(os.devnull, "w", encoding="utf-8") as nothing:
                os.dup2(nothing.fileno(), 1)
                _run_child(place, flags, fatal, write)
        os.close(write)
        with open(read, encoding="utf-8") as pipe:
            text = pipe.read()
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == (-signal.SIGKILL if fatal else 0), (
            fatal,
            status,
            text,
        )
        operations = operations or json.loads(text)
    sys.stdout.write(json.dumps({"count": len(operations), **Counter(operations)}) + "\n")
