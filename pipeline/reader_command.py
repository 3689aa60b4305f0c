"""Shared by the commands that read datasets: the parser, errors in one sentence, and the line of JSON."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recordmill.pipeline.configuration.options import Parser, add_json_switch, write_json
from recordmill.pipeline.terminal.terminal import Terminal
from recordmill.schemas.errors import DONE, FAILED, INTERRUPTED, RecordmillError


def reader_parser(prog: str, description: str, path: str, epilog: str) -> Parser:
    """A parser with `PATH` and `--json`.

    Args:
        prog: what the user typed before the flags.
        description: what the command does.
        path: what `PATH` may be.
        epilog: shown below the flags, unchanged.
    """
    parser = Parser(prog=prog, description=description, epilog=epilog)
    parser.add_argument("path", metavar="PATH", help=f"{path}, on any of Beam's file systems")
    add_json_switch(parser)
    return parser


def run_reader(
    parser: Parser,
    argv: Sequence[str] | None,
    work: Callable[[argparse.Namespace], Mapping[str, Any]],
    interrupted: str = "interrupted",
    failed: int = FAILED,
) -> int:
    """Runs a command, and reports errors that users can fix: a sentence on stderr, a line of JSON on stdout.

    Args:
        parser: as `reader_parser` returns it.
        argv: the flags; None for those of the process.
        work: does the work; returns the content of the line, which may have an `exit_code`.
        interrupted: what to say after Ctrl-C.
        failed: the exit code if something cannot be read.

    Returns:
        The exit code.
    """
    flags = argparse.Namespace(path="", json=None)
    try:
        flags = parser.parse_args(_complete_json_flags(sys.argv[1:] if argv is None else argv))
        line = {"exit_code": DONE, **work(flags)}
    except RecordmillError as error:
        line = _failure(failed if error.exit_code == FAILED else error.exit_code, str(error))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        line = _failure(failed, f"{error.filename or flags.path} cannot be read: {reason}")
    except ValueError as error:  # raised by Beam for a path that none of its file systems supports
        line = _failure(failed, f"{flags.path} cannot be read: {' '.join(str(error).split())}")
    except KeyboardInterrupt:
        line = _failure(INTERRUPTED, interrupted)
    write_json(json.dumps(line), flags.json)
    return int(line["exit_code"])


def _complete_json_flags(words: Sequence[str]) -> list[str]:
    """Turns each `--json` without a value into `--json=true`: argparse would take `PATH` for the value."""
    following = [*words[1:], ""]
    return [
        "--json=true" if word == "--json" and after.lower() not in ("true", "false") else word
        for word, after in zip(words, following, strict=False)
    ]


def _failure(exit_code: int, sentence: str) -> dict[str, Any]:
    Terminal(sys.stderr).say(f"error: {sentence}")
    return {"status": "failed", "exit_code": exit_code, "sentence": sentence}
