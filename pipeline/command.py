"""The command `recordmill`, which imports a subcommand when it is used.

The subcommands that read datasets share a parser, errors in one sentence, and the JSON summary.
"""

import argparse
import difflib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from shlex import join
from typing import TYPE_CHECKING, Any

from recordmill.pipeline.configuration.options import (
    JSON_HELP,
    NO_JSON_HELP,
    QUIET_HELP,
    Parser,
    check_quiet,
    write_json,
)
from recordmill.pipeline.configuration.positions import is_flag
from recordmill.pipeline.launch import launch
from recordmill.pipeline.quiet_libraries import show_libraries
from recordmill.pipeline.terminal import Terminal
from recordmill.schemas.errors import (
    DONE,
    FAILED,
    INTERRUPTED,
    WRONG_USAGE,
    RecordmillError,
)
from recordmill.schemas.formatting import printable
from recordmill.schemas.version import VERSION

if TYPE_CHECKING:
    from recordmill.pipeline.job import BuildPipeline

HELP = """\
usage: {prog} COMMAND [flags]

Converts labeled images, tables or existing TFRecords into sharded TFRecord files, and accounts for
every input file.

commands:
  run INPUT... OUTPUT    convert a collection; run is the default command before flags
  verify PATH            check a dataset, or any TFRecord file: is it complete and consistent?
  inspect PATH           show what is in a dataset, or in any TFRecord file
  view PATH              look at the images of a dataset on a local page
  diff PATH OTHER        compare two datasets, or a dataset and a folder of images
  versions OUTPUT        list the versions of a dataset, go back to one, or delete some
  analyze PATH           compute statistics and a preprocessing model for TensorFlow
  completion SHELL       print a script that completes commands and flags in bash, zsh or fish

{prog} run --sample converts 250 generated pictures; each command has --help.
"""

_COMMANDS = ("run", "verify", "inspect", "view", "diff", "versions", "analyze", "completion")


def run_command(argv: Sequence[str], build: "BuildPipeline", prog: str = "recordmill") -> int:
    """Runs a command line.

    Args:
        argv: the words after `prog`.
        build: builds the pipeline of a conversion.
        prog: what the user typed to start the command.

    Returns:
        The exit code. Without arguments it shows the help and returns the code for wrong usage.
    """
    if not argv:
        sys.stderr.write(HELP.format(prog=prog))
        return WRONG_USAGE
    first, rest = argv[0], argv[1:]
    if first in ("--help", "-h", "help"):
        sys.stdout.write(HELP.format(prog=prog))
        return DONE
    if first == "--version":
        sys.stdout.write(f"recordmill {VERSION}\n")
        return DONE
    if first == "run" or first.startswith("-"):
        return launch(rest if first == "run" else argv, build, f"{prog} run")
    if first in _COMMANDS:
        return int(import_module(f"recordmill.pipeline.{first}").main(rest, f"{prog} {first}"))
    sys.stderr.write(f"error: {printable(_explain_unknown(first, rest, prog))}\n")
    return WRONG_USAGE


def _explain_unknown(word: str, rest: Sequence[str], prog: str) -> str:
    """Returns a sentence on the first word, which is not a command; perhaps `run` was left out."""
    near = difflib.get_close_matches(word, _COMMANDS, 1)
    if near:
        return f"there is no command {word}: did you mean {near[0]}?"
    if rest and not is_flag(rest[0]):
        return f"there is no command {word}: to convert it, write {prog} run {join([word, *rest])}"
    return f"there is no command {word}: choose one of {', '.join(_COMMANDS)}"


def reader_parser(prog: str, description: str, path: str, epilog: str) -> Parser:
    """Returns a parser with `PATH` and the flags that all these commands have.

    Args:
        prog: what the user typed before the flags.
        description: what the command does.
        path: what `PATH` may be.
        epilog: shown below the flags, unchanged.
    """
    parser = Parser(prog=prog, description=description, epilog=epilog)
    parser.add_argument("--version", action="version", version=f"recordmill {VERSION}")
    parser.add_argument("path", metavar="PATH", help=f"{path}, on any of Beam's file systems")
    parser.add_flag("--json", action="store_true", default=None, help=JSON_HELP)
    parser.add_flag("--no-json", dest="json", action="store_false", default=None, help=NO_JSON_HELP)
    parser.add_flag("--quiet", action="store_true", help=QUIET_HELP)
    verbose = "also show the messages of libraries"
    parser.add_flag("--verbose", action="store_true", help=verbose)
    return parser


def run_reader(
    parser: Parser,
    argv: Sequence[str] | None,
    work: Callable[[argparse.Namespace], Mapping[str, Any]],
    interrupted: str = "interrupted",
    failed: int = FAILED,
) -> int:
    """Runs a command, and reports errors that users can fix.

    An error is a sentence on stderr, and the JSON summary on stdout.

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
        flags = parser.parse_args(argv)
        check_quiet(flags.quiet, flags.verbose)
        with show_libraries(flags.verbose):
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


def _failure(exit_code: int, message: str) -> dict[str, Any]:
    Terminal(sys.stderr).say(f"error: {message}")
    return {"status": "failed", "exit_code": exit_code, "message": message}
