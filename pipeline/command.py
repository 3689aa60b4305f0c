"""The command `recordmill`: each subcommand is imported when it is used."""

import difflib
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from recordmill.pipeline.launch import launch
from recordmill.schemas.errors import DONE, WRONG_USAGE
from recordmill.schemas.formatting import printable
from recordmill.schemas.version import VERSION

HELP = """\
usage: recordmill run --input DIR --output DIR [flags]
       recordmill verify | inspect | analyze PATH [flags]
       recordmill diff PATH OTHER [flags]
       recordmill versions OUTPUT [flags]

Turns image and label collections into sharded TFRecords of tf.train.Example.

commands:
  run       convert a collection; the default command: recordmill --input photos --output dataset
  verify    check a dataset, or any TFRecord file: is it complete and consistent?
  inspect   show what is in a dataset, or in any TFRecord file
  diff      compare two datasets, or a dataset and a folder of images
  versions  list the versions of a dataset, go back to one, or delete some
  analyze   compute statistics and a preprocessing model for training and serving with TensorFlow

try it:
  recordmill run --sample          converts 250 generated pictures, to out/quickstart
  recordmill run --help            shows all flags; so do the other commands
"""

_COMMANDS = ("run", "verify", "inspect", "diff", "versions", "analyze")


def run_command(argv: Sequence[str], build: Callable[..., Any]) -> int:
    """Runs a command line.

    Args:
        argv: the words after `recordmill`.
        build: builds the pipeline of a conversion.

    Returns:
        The exit code. Without arguments it shows the help and returns the code for wrong usage.
    """
    if not argv:
        sys.stderr.write(HELP)
        return WRONG_USAGE
    first, rest = argv[0], argv[1:]
    if first in ("--help", "-h", "help"):
        sys.stdout.write(HELP)
        return DONE
    if first == "--version":
        sys.stdout.write(f"recordmill {VERSION}\n")
        return DONE
    if first == "run" or first.startswith("-"):
        return launch(rest if first == "run" else argv, build, "recordmill run")
    if first in _COMMANDS:
        return int(import_module(f"recordmill.pipeline.{first}").main(rest, f"recordmill {first}"))
    sys.stderr.write(f"error: {printable(_explain_unknown(first))}\n")
    return WRONG_USAGE


def _explain_unknown(word: str) -> str:
    if near := difflib.get_close_matches(word, _COMMANDS, 1):
        return f"there is no command {word}: did you mean recordmill {near[0]}?"
    if os.path.exists(word):
        return f"there is no command {word}: to convert it, write recordmill run --input {word} --output DIR"
    return f"there is no command {word}: choose one of {', '.join(_COMMANDS)}"
