"""Says in one sentence why a run failed because of a store, or of the limits of a machine."""

import errno
import re
import resource
from collections.abc import Iterator

from recordmill.schemas.errors import RecordmillError
from recordmill.schemas.formatting import format_size, last_line

_STEP = re.compile(r"\s*\[while running [^\]]*\]\s*$")
"""What Beam adds to an error's text."""

_READING = re.compile(r"\bInputError: (\S+://.* cannot be read: .*)", re.DOTALL)

_AT_A_STORE = re.compile(
    r"\b\w*Error: \[Errno \d+\] (?P<why>.*): ['\"](?P<uri>[a-zA-Z][-+.\w]*://[^'\"]*)['\"]$",
    re.DOTALL,
)
"""An OSError that names an object, as a runner passes it on: as text."""

_NO_THREAD = re.compile(r"can't (start|allocate) new (thread|lock)|can't create new thread")
_NO_MEMORY = re.compile(
    r"\bMemoryError\b|Cannot allocate memory|failed to map segment|Unable to allocate|"
    r"\[Errno 12\]|malloc of size \d+ failed"
)
_LASTS = re.compile(
    r"\b(40[134]|access ?denied|does not exist|forbidden|invalid credentials|no such|not found|"
    r"permission denied|unauthorized)\b",
    re.IGNORECASE,
)
"""What stores say of problems that do not pass by themselves."""

_MAY_PASS = re.compile(
    r"\b(Connection\w*Error|TimeoutError|\w*Timeout|ServiceUnavailable|InternalServerError|"
    r"TooManyRequests|DeadlineExceeded|IncompleteRead|BrokenPipeError)\b|"
    r"connection (refused|reset|closed|aborted)|timed out|temporarily unavailable",
    re.IGNORECASE,
)
"""Errors of networks and services, which may be gone when the command is run again."""

_NO_PROCESS = re.compile(r"Resource temporarily unavailable|\[Errno 11\]")


def explain_failure(error: BaseException, output: str) -> str | None:
    """Explains such an error; returns None for any other.

    Runners pass on the errors of workers as text, so their classes do not always help.

    Args:
        error: what the runner, or a step, has raised.
        output: the output, which is written rather than read.
    """
    texts = [_STEP.sub("", each) for each in _texts_of(error)]
    for text in texts:
        if found := _READING.search(text):
            return _advise(found[1], "read")
    for text in texts:
        if found := _AT_A_STORE.search(text):
            what = "written" if found["uri"].startswith(output) else "read"
            return _advise(f"{found['uri']} cannot be {what}: {found['why']}", what)
    if any(map(_NO_THREAD.search, texts)):
        return f"no thread can be started ({_limits()}): {_REMEDY}"
    if any(map(_NO_MEMORY.search, texts)):
        return f"there is not enough memory ({_limits()}): {_REMEDY}"
    if any(map(_NO_PROCESS.search, texts)):
        return f"no process or thread can be started ({_limits()}): {_REMEDY}"
    return None


def _advise(problem: str, what: str) -> str:
    """Returns a sentence on a store's problem, with the same command only where that can help."""
    sentence = " ".join(_short(problem).split())
    if _LASTS.search(problem):
        verb = "write" if what == "written" else "read"
        return f"{sentence}: check that it exists, and that this account may {verb} it"
    return f"{sentence}: {_AGAIN}"


def describe_unexpected(error: Exception) -> str:
    """Returns a sentence on an error that nothing else explains.

    It says how to find the place. It advises the same command only if the error may pass by itself.
    """
    what = f"unexpected {type(error).__name__}: {last_line(error)}"
    if any(map(_MAY_PASS.search, _texts_of(error))):
        return f"{what}: {_AGAIN}, or add --traceback to see where it comes from"
    return f"{what}: add --traceback to see where it comes from"


_AGAIN = "run the same command again"

_REMEDY = "raise the limit, free memory, or lower --threads and --processes"


def _texts_of(error: BaseException | None) -> Iterator[str]:
    """Yields the texts of an error and of those that caused it, with their classes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        # Only the end: a runner's text may begin with a traceback.
        text = str(error).strip()
        yield f"{type(error).__name__}: {text.splitlines()[-1] if text else ''}"
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            yield "MemoryError: "
        error = error.__cause__ or error.__context__


def _short(text: str) -> str:
    if len(text) < 300:
        return text
    return f"{text[:300]}..."


def _limits() -> str:
    """Returns the limits of this process that may be the reason, in a few words."""
    limits = []
    for what, kind, show in (
        ("address space", resource.RLIMIT_AS, format_size),
        ("processes and threads", resource.RLIMIT_NPROC, "{:,}".format),
    ):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            limits.append(f"{what} limited to {show(soft)}")
    return ", ".join(limits) or "no limit of this process is set"


LEAST_TO_IMPORT = 512 * 2**20
"""The address space that a run needs to import everything, and to begin.

With less, modules in C crash while they are imported, or when Python ends them."""


def check_space_for_imports() -> None:
    """Makes sure that the limit on this process's address space leaves room for imports.

    Raises:
        RecordmillError: it does not.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_TO_IMPORT:
        raise RecordmillError(
            f"the address space of this process is limited to {format_size(limit)}, which is too "
            "little to begin: raise the limit (ulimit -v) to 1 GiB or more"
        )


LEAST_ADDRESS_SPACE = 192 * 2**20
"""What a run needs once everything is imported: stacks of threads, and images of some size.

With less, Python may wait for ever for a thread that has no memory to begin."""


def check_address_space() -> None:
    """Makes sure that the limit on this process's address space leaves room for threads.

    Raises:
        RecordmillError: it does not.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # another system than Linux
        return
    if limit - used < LEAST_ADDRESS_SPACE:
        needed = format_size(used + LEAST_ADDRESS_SPACE)
        raise RecordmillError(
            f"the address space of this process is limited to {format_size(limit)}, which leaves "
            f"no room for threads: raise the limit (ulimit -v) to {needed} or more"
        )
