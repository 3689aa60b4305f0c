"""Starts the processes of a cluster on this machine, knows them again, and ends them."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SECONDS_TO_START = 60.0
SECONDS_TO_END = 10.0


class MissingError(Exception):
    """Something that is needed is missing; the text says what to do."""


@dataclass(frozen=True)
class Processes:
    """The processes of one cluster.

    Attributes:
        folder: one log per process, and one file with its id.
    """

    folder: Path

    def start(
        self,
        name: str,
        command: Sequence[str],
        ports: Sequence[int] = (),
        environment: Mapping[str, str] = {},
    ) -> None:
        """Starts a process in a group of its own unless it is running, and waits until it listens.

        Raises:
            MissingError: a port is taken, or the process ended at once.
        """
        if self.is_running(name):
            return
        for port in ports:
            if _listens(port):
                raise MissingError(
                    f"port {port}, which the {name} needs, is taken by another process: end that "
                    "one"
                )
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        identity = f"{process.pid} {_start_time(process.pid)}"
        self._file_of(name).write_text(identity, encoding="utf-8")

        def listens() -> bool:
            if process.poll() is not None:
                raise MissingError(
                    f"the {name} ended with exit code {process.returncode}: see "
                    f"{self.folder / name}.log"
                )
            return all(map(_listens, ports))

        self.wait_for(listens, f"the {name}")

    def running(self) -> list[str]:
        """Returns the names of the processes that were started and are still running."""
        names = [path.stem for path in sorted(self.folder.glob("*.pid"))]
        return [name for name in names if self.is_running(name)]

    def is_running(self, name: str) -> bool:
        """Returns whether the process of that name is running, and is the one that was started."""
        return self._group_of(name) is not None

    def kill(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends one process and all that it started; kills what does not end on its own."""
        group = self._group_of(name)
        if group is not None:
            os.killpg(group, how)
            deadline = time.monotonic() + SECONDS_TO_END
            while self.is_running(name) and time.monotonic() < deadline:
                time.sleep(0.1)
            with suppress(ProcessLookupError):  # no process is left
                os.killpg(group, signal.SIGKILL)
        self._file_of(name).unlink(missing_ok=True)

    def end(self) -> None:
        """Ends all processes that were started."""
        for name in self.running():
            self.kill(name)

    def wait_for(self, ready: Callable[[], bool], what: str) -> None:
        """Waits until something is ready.

        Raises:
            MissingError: it takes more than a minute.
        """
        deadline = time.monotonic() + SECONDS_TO_START
        while True:
            try:
                if ready():
                    return
            except (OSError, KeyError):  # nothing answers yet, or the answer is incomplete
                pass
            if time.monotonic() > deadline:
                raise MissingError(
                    f"{what} did not start within {SECONDS_TO_START:.0f} s: see the logs in "
                    f"{self.folder}"
                )
            time.sleep(0.1)

    def _file_of(self, name: str) -> Path:
        return self.folder / f"{name}.pid"

    def _group_of(self, name: str) -> int | None:
        """The process group; None if the process is gone.

        Another process may have its number by now, but not its start time.
        """
        try:
            pid, _, began = self._file_of(name).read_text(encoding="utf-8").partition(" ")
        except FileNotFoundError:
            return None
        return int(pid) if began and began == _start_time(int(pid)) else None


def find_program(name: str, title: str) -> str:
    """Returns the path of a program.

    Raises:
        MissingError: it is not on PATH.
    """
    found = shutil.which(name)
    if not found:
        raise MissingError(f"{title} is needed and {name} is not on PATH: install it")
    return found


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _start_time(pid: int) -> str:
    """The start time of a process; empty if there is none."""
    done = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", f"{pid}"], capture_output=True, text=True, check=False
    )
    state, _, began = done.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else began.strip()
