"""Runs every command that a message prints, until each ends right or asks a further question."""

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WORD = r"'(?:[^']|'\"'\"')*'|[^\s';,]*[^\s';,.:)]"
_FLAG = rf"--(?:input|output|config|set|exclude)[ =](?:[\w.]+=)?(?:{_WORD})"
_FLAGS = re.compile(rf"(?<![\w-]){_FLAG}(?: (?:and )?{_FLAG})*")

Run = Callable[[list[str]], tuple[int, str, str]]
"""Runs a conversion with such arguments; gives its exit code, and what it printed on stdout and
stderr."""


def printed_flags(message: str) -> Iterator[list[str]]:
    """The flags that a message offers, one list for each way."""
    for found in _FLAGS.finditer(message):
        words = shlex.split(found[0].replace(" and --", " --"))
        yield [word for word in words if word]


@dataclass(frozen=True)
class End:
    """How a way through the printed commands ends: the arguments, the exit codes of all commands on
    it, the dataset's marker if there is one, and the last message."""

    arguments: tuple[str, ...]
    codes: tuple[int, ...]
    marker: dict[str, Any]
    message: str

    @property
    def code(self) -> int:
        return self.codes[-1]


def follow(
    arguments: list[str], run: Run, most: int = 4, before: tuple[int, ...] = ()
) -> Iterator[End]:
    """Runs a command, then every command that it prints, and so on; yields all ends.

    The output of an end is there until the next end is asked for.

    Flags of a printed command replace those of the same name, as a user would type them.
    """
    code, out, err = run(arguments)
    codes = (*before, code)
    message = "\n".join(line for line in err.splitlines() if line.startswith("error: "))
    for command in re.findall("`((?:cp|\\{) [^`]+)`", message):
        subprocess.run(["sh", "-ec", command], check=True)
    ways = [_combine(arguments, flags) for flags in printed_flags(message)] if code else []
    if not code or not ways or not most:
        lines = out.strip().splitlines()
        marker = json.loads(lines[-1]) if not code and lines else {}
        yield End(tuple(arguments), codes, marker, message or err)
        return
    for way in ways:
        assert way != arguments, f"the message advises what was typed: {message}"
        yield from follow(way, run, most - 1, codes)


def _combine(arguments: list[str], flags: list[str]) -> list[str]:
    """The arguments with other flags: a new input takes the place of the old one."""
    given = [tuple(arguments[at : at + 2]) for at in range(0, len(arguments), 2)]
    more = [tuple(flags[at : at + 2]) for at in range(0, len(flags), 2)]
    replaced = {flag for flag, _ in more if flag != "--set"}
    keys = {value.partition("=")[0] for flag, value in more if flag == "--set"}
    left = [
        (flag, value)
        for flag, value in given
        if flag not in replaced and not (flag == "--set" and value.partition("=")[0] in keys)
    ]
    return [word for pair in (*left, *more) for word in pair]


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Writes files below a folder."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
