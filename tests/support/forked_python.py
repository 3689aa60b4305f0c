"""New `python` processes in no time: forks of one that has imported Beam and the product, which
takes two seconds."""

import ctypes
import gc
import json
import os
import pkgutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
LONGEST_REQUEST = 100_000
STARTED_LATE = (
    "apache_beam.runners.portability.fn_api_runner.worker_handlers",
    "apache_beam.runners.worker.sdk_worker",
)


class ForkServer:
    """Starts when the first process is asked for."""

    def __init__(self) -> None:
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def popen(self, words: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Like `subprocess.Popen` of `python -c ...` or `python -m ...`."""
        server = self

        class Forked(subprocess.Popen[str]):
            def _execute_child(self, *arguments: Any) -> None:
                _, _, _, _, _, cwd, env, _, _, _, *pipes = arguments
                theirs = (pipes[0], pipes[3], pipes[5])
                files = [number if each == -1 else each for number, each in enumerate(theirs)]
                self.pid = server._start(
                    words[1:], os.fspath(cwd), os.environ if env is None else env, files
                )
                self._child_created = True
                self._close_pipe_fds(*pipes[:6])  # type: ignore[attr-defined]  # private

        return Forked(words, **options)

    def _start(
        self, words: Sequence[str], cwd: str, env: Mapping[str, str], files: Sequence[int]
    ) -> int:
        request = json.dumps([list(words), cwd, dict(env)]).encode()
        assert len(request) < LONGEST_REQUEST
        prctl = ctypes.CDLL(None).prctl
        prctl(SUBREAPER, 1, 0, 0, 0)  # gets the grandchildren whose parents have ended
        try:
            return self._ask(request, files) or self._ask(request, files)
        finally:
            prctl(SUBREAPER, 0, 0, 0, 0)

    def _ask(self, request: bytes, files: Sequence[int]) -> int:
        """The id of the new process; 0 if something has ended the server, which then starts again
        when asked."""
        if self._control is None:
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._control.settimeout(None)
            with theirs:
                words = [sys.executable, "-c", "import forked_python; exec(forked_python.serve())"]
                environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
                self._process = subprocess.Popen(
                    words, stdin=theirs.fileno(), cwd="/", env=environment
                )
        try:
            socket.send_fds(self._control, [request], files)
            answer = self._control.recv(20)
        except (BrokenPipeError, ConnectionResetError):
            answer = b""
        if not answer:
            self.close()
        return int(answer or 0)

    def close(self) -> None:
        """Ends the server; what it has started is left alone."""
        if self._control is not None and self._process is not None:
            self._control.close()
            self._process.wait()
            self._control = None


def serve() -> str:
    """Forks as often as it is asked to; returns in the new processes only, with the code that they
    are to run."""
    _import_all()
    gc.freeze()  # collections need not look at all modules in each process
    control = socket.socket(fileno=os.dup(0))
    # Beam sets a default of a minute in the parent, whose sockets do not block then.
    control.settimeout(None)
    while True:
        request, files, _, _ = socket.recv_fds(control, LONGEST_REQUEST, 3)
        if not request:
            os._exit(0)
        ours, theirs = os.pipe()
        if (middle := os.fork()) == 0:
            if os.fork() > 0:
                os._exit(0)
            os.write(theirs, str(os.getpid()).encode())
            break
        pid = os.read(ours, 20)
        os.waitpid(middle, 0)  # after its end, the new process has another parent
        control.send(pid)
        for each in (ours, theirs, *files):
            os.close(each)
    control.close()
    os.close(ours)
    os.close(theirs)
    words, cwd, env = json.loads(request)
    return _become(words, cwd, env, files)


def _import_all() -> None:
    import recordmill

    names = [each.name for each in pkgutil.walk_packages(recordmill.__path__, "recordmill.")]
    for name in (*names, *STARTED_LATE):
        with suppress(ImportError):  # of an extra that is not installed
            import_module(name)


def _become(words: list[str], cwd: str, env: dict[str, str], files: list[int]) -> str:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        mode = "r" if name == "stdin" else "w"
        buffering = 1 if os.isatty(number) else -1
        setattr(sys, name, open(number, mode, buffering=buffering, closefd=False))  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    kind, what, *rest = words
    sys.argv = ["-c" if kind == "-c" else what, *rest]
    if kind == "-c":
        sys.path[0] = ""
        return what
    sys.path[0] = cwd
    return f"import runpy; runpy.run_module({what!r}, run_name='__main__', alter_sys=True)"


READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "OMP_", "TF_")
"""What the names of variables begin with that a process reads when it starts."""


def can_fork(options: Mapping[str, Any]) -> bool:
    """Whether a fork is like a new process with these options of `Popen`."""
    changed = dict(options.get("env") or os.environ).items() ^ os.environ.items()
    late = not any(name.startswith(READ_AT_START) for name, _ in changed)
    return (
        sys.platform == "linux"
        and late
        and options.keys() <= {"stdin", "stdout", "stderr", "text", "cwd", "env"}
    )
