"""Checks inputs and output before any work, and reads the lists that settings name.

Each error is a sentence that says what to do.
"""

import errno
import io
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from importlib.util import find_spec
from typing import TypeVar

from recordmill import storage
from recordmill.schemas.corrections import Corrections
from recordmill.schemas.dataset.file_names import MARKER
from recordmill.schemas.errors import RecordmillError, UsageError
from recordmill.schemas.pages import find_page
from recordmill.schemas.rejection import Exclusions
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.recipe import NamedLists
from recordmill.schemas.settings.source import Input
from recordmill.storage.dataset_files import (
    MOST_OBJECT_BYTES,
    current_folder,
    find_marker,
    find_pointer,
    split_version,
    version_names,
)

Answer = TypeVar("Answer")


SECONDS_TO_ANSWER = 30.0
"""How long a store may take to answer; its client, and so the job, would retry for minutes."""

_CLIENTS = {"gs": ("gcp", "google.cloud.storage"), "s3": ("aws", "boto3")}

_SECRETS = (
    "--s3_access_key_id",
    "--s3_secret_access_key",
    "--s3_session_token",
    "--azure_connection_string",
)


def call_with_timeout(function: Callable[[], Answer], seconds: float) -> Answer:
    """Calls a function; returns or raises what it does.

    Raises:
        TimeoutError: it has not ended within `seconds`; its thread may go on until the process
            ends.
    """
    answer: Future[Answer] = Future()

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


def parse_inputs(inputs: Sequence[str]) -> tuple[Input, ...]:
    """Parses the values of `--input`.

    Raises:
        UsageError: one of several inputs has no name, or two have the same.
    """
    parsed = []
    for text in inputs:
        name, equals, path = text.partition("=")
        named = bool(equals) and is_input_name(name) and not os.path.exists(text)
        # The shell expands ~ only at the beginning of a word, so not in `NAME=~/photos` or
        # `--input=~/photos`.
        path = parse_path(os.path.expanduser(path if named else text))
        parsed.append(Input(path, name if named else ""))
    names = [each.name for each in parsed]
    if len(parsed) > 1 and not all(names):
        raise UsageError(
            "several inputs need names, which their images' keys begin with: write --input NAME=DIR"
        )
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"two inputs have the name {repeated}: give each a name of its own")
    return tuple(parsed)


def is_input_name(text: str) -> bool:
    """Returns whether a text can name an input: `--input NAME=DIR`."""
    return text.replace("-", "_").isidentifier()


def separate_pattern(given: Input) -> Input:
    """Returns an input with a pattern in its path as the folder above, and the pattern below it."""
    folders = given.path.split("/")
    first = next((at for at, name in enumerate(folders) if set("*?[") & set(name)), None)
    if first is None or (storage.is_local(given.path) and os.path.exists(given.path)):
        return given
    folder = "/".join(folders[:first]) or ("/" if given.path.startswith("/") else ".")
    return Input(folder, given.name, "/" + "/".join(folders[first:]))


def check_secrets(arguments: Sequence[str]) -> None:
    """Refuses Beam's flags that hold secrets, without printing their values.

    Raises:
        UsageError: there is one.
    """
    for flag in (argument.partition("=")[0] for argument in arguments):
        if flag in _SECRETS:
            why = "would be readable in the list of processes and in logs"
            page = find_page("object_stores.md")
            raise UsageError(f"{flag} {why}: put it in the environment ({page})")


def parse_path(path: str) -> str:
    """Returns a path without trailing slashes.

    Raises:
        UsageError: it is empty, or not valid text.
    """
    if not path:
        raise UsageError("a path is empty: name a folder")
    try:
        path.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise UsageError(
            f"the path {shown} is not UTF-8: rename it, or give a link to it"
        ) from None
    return path.rstrip("/") or "/"


def find_folder(path: str, text: str, here: bool) -> str:
    """Returns the folder that an input's paths are relative to.

    It is the input itself, or its parent if the input is a file.

    Args:
        path: the input.
        text: the input as the user wrote it; a trailing slash marks a folder, so its store need not
            be probed.
        here: whether the job runs on this machine and so reaches the same stores as this process.

    Raises:
        RecordmillError: there is no file system for the path, or its store does not answer.
    """
    if storage.is_local(path):
        return (os.path.dirname(path) or ".") if os.path.isfile(path) else path
    is_file = not text.endswith("/") and probe_store("input", path, path, here)
    return path.rpartition("/")[0] if is_file else path


def probe_dataset_store(what: str, folder: str, here: bool) -> None:
    """Checks that a dataset's store can be reached, unless its folder is on this machine.

    Raises:
        RecordmillError: as for `probe_store`.
    """
    if not storage.is_local(folder):
        probe_store(what, folder, storage.join(folder, MARKER), here)


def probe_store(what: str, place: str, path: str, here: bool) -> bool:
    """Checks that a store can be reached; returns whether the path is a file on it.

    Args:
        what: what the place is for, in a word.
        place: an input, the output or a dataset.
        path: what is asked about: the place, or a file in it.
        here: as for `find_folder`.

    Raises:
        RecordmillError: there is no file system for the path, its client is not installed, or it
            does not answer.
    """
    _check_client(what, place)
    try:
        return call_with_timeout(lambda: storage.describe(path), SECONDS_TO_ANSWER) is not None
    except OSError as error:  # left to the job, which may have other permissions
        if here and (isinstance(error, TimeoutError) or error.errno == errno.EIO):
            why = " ".join(str(error.strerror or error).split())
            raise RecordmillError(
                f"the store of the {what} {place} cannot be reached: {why:.300}"
            ) from None
        return False
    except ValueError as error:
        raise RecordmillError(
            f"the {what} {place} cannot be read: {' '.join(str(error).split())}"
        ) from None


def check_versions(inputs: Sequence[Input], output: str, here: bool) -> None:
    """Checks that no input has versions, and that the output is not itself a version.

    All versions of an input would be read. `here` is as for `find_folder`.

    Raises:
        RecordmillError: one of the checks fails.
    """
    if not here:
        return
    parent, name = os.path.split(output)
    with suppress(OSError):  # left to the job, which may have other permissions
        if split_version(name) and find_pointer(parent or "."):
            raise UsageError(
                f"the output {output} is a version: choose {parent or '.'} and --versions"
            )
        for path in (each.path for each in inputs):
            if (current := current_folder(path)) != path:
                raise UsageError(
                    f"the input {path} has versions, which would all be read: name one, such as "
                    f"{current}"
                )


def check_free_of_datasets(output: str, here: bool) -> None:
    """Checks that `--writer=beam` replaces no dataset.

    Args:
        output: the output folder.
        here: as for `find_folder`.

    Raises:
        RecordmillError: the output holds a dataset.
    """
    with suppress(OSError):  # left to the job, which may have other permissions
        if (here or storage.is_local(output)) and (find_marker(output) or version_names(output)):
            raise RecordmillError(
                f"--writer=beam replaces no dataset, and {output} holds one: choose another output"
            )


def check_places(inputs: Sequence[Input], output: str) -> None:
    """Checks that inputs exist, and that the output is outside them and is a folder of its own.

    Raises:
        RecordmillError: one of the checks fails, or a store's client is not installed.
    """
    for what, path in (("output", output), *(("input", each.path) for each in inputs)):
        _check_client(what, path)
    check_local_inputs(inputs)
    for path in (each.path for each in inputs):
        if _is_inside(output, path):
            raise RecordmillError(
                f"the output {output} is inside the input {path}: choose a folder outside it"
            )
        if _is_inside(path, output):
            raise RecordmillError(
                f"the output {output} contains the input {path}: choose a folder of its own"
            )


def _check_client(what: str, path: str) -> None:
    if not (found := _CLIENTS.get(path.partition("://")[0])):
        return
    extra, client = found
    with suppress(ModuleNotFoundError):  # not even its parent package is installed
        if find_spec(client):
            return
    needs = "needs its store's client, which is not installed"
    raise RecordmillError(f"the {what} {path} {needs}: pip install '.[{extra}]' in a clone")


def check_local_inputs(inputs: Sequence[Input]) -> None:
    """Checks that inputs on this machine exist and can be read.

    Raises:
        RecordmillError: one does not, or cannot.
    """
    for path in (each.path for each in inputs if storage.is_local(each.path)):
        if not os.path.exists(path):
            raise RecordmillError(f"the input {path} does not exist: check the path")
        if not os.access(path, os.R_OK | (os.X_OK if os.path.isdir(path) else 0)):
            raise RecordmillError(f"the input {path} cannot be read: check its permissions")


def _is_inside(path: str, folder: str) -> bool:
    if storage.is_local(path) and storage.is_local(folder):
        path, folder = os.path.realpath(path), os.path.realpath(folder)
        if os.path.isfile(folder):
            return False
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def read_corrections(path: str) -> Corrections:
    """Reads the file of `corrections`; an empty path gives none.

    Raises:
        UsageError: the file cannot be read, or a line is malformed.
    """
    if not path:
        return Corrections()
    return _read_list(path, "corrections", Corrections.parse)


def read_lists(settings: DatasetSettings) -> NamedLists:
    """Reads the files that `exclude` and `corrections` name.

    Raises:
        UsageError: one of them cannot be read, or a line is malformed.
    """
    return NamedLists(read_exclusions(settings.exclude), read_corrections(settings.corrections))


def read_exclusions(path: str, setting: str = "exclude") -> Exclusions:
    """Reads a list of images to exclude; an empty path gives an empty list.

    Args:
        path: the list, on any file system.
        setting: the setting or the flag that names it.

    Raises:
        UsageError: the file cannot be read, or a line is malformed.
    """
    if not path:
        return Exclusions()
    return _read_list(path, setting, Exclusions.parse)


def _read_list(path: str, setting: str, parse: Callable[[Iterable[str]], Answer]) -> Answer:
    """Reads a file of lines that a setting or a flag names."""
    try:
        # Some editors write a byte order mark.
        content = storage.read_whole(os.path.expanduser(path), MOST_OBJECT_BYTES)
        return parse(io.StringIO(content.decode("utf-8-sig"), newline=""))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{setting}: {path} cannot be used: {getattr(error, 'strerror', None) or error}"
        ) from None
