"""`recordmill analyze`: prepares a finished dataset for training and serving with TensorFlow."""

import argparse
import gc
import logging
import os
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

from recordmill import storage
from recordmill.pipeline.command import reader_parser, run_reader
from recordmill.pipeline.configuration.options import Parser
from recordmill.pipeline.configuration.preflight import parse_path
from recordmill.pipeline.terminal import make_console
from recordmill.reading.analyze_dataset import analyze_dataset
from recordmill.schemas.dataset.file_names import TRANSFORM_FN
from recordmill.schemas.errors import LoadError, RecordmillError
from recordmill.schemas.formatting import last_line, printable
from recordmill.storage.dataset_files import DEFAULT_SIZE, current_folder

MOST_SIDE = 16_384
"""No network takes larger images, and a batch would not fit in memory."""

EPILOG = """\
examples:
  images of 160 x 224 pixels for the model:
    %(prog)s dataset --size 160x224

exit codes: 0 done (or already there)   1 failed   2 wrong usage   130 interrupted
"""


def _size(text: str) -> tuple[int, int]:
    sides = re.fullmatch(r"([1-9][0-9]{0,4})(?:x([1-9][0-9]{0,4}))?", text.lower())
    if not sides or max(map(int, filter(None, sides.groups()))) > MOST_SIDE:
        raise argparse.ArgumentTypeError(
            f"{text} is not a size of at most {MOST_SIDE}, such as 224 or 160x224"
        )
    return int(sides[1]), int(sides[2] or sides[1])


def main(argv: Sequence[str] | None = None, prog: str = "python -m pipeline.analyze") -> int:
    """Analyzes one dataset and reports the result.

    The report is text on stderr, and one line of JSON for programs on stdout.

    Args:
        argv: the flags; by default, those of the process.
        prog: what the user typed before them.

    Returns:
        The exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
    """
    # Little is computed, and other processes may be training.
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    code = run_reader(make_parser(prog), argv, _analyze, "interrupted: the dataset is as it was")
    # After TensorFlow Transform, Python's final garbage collection crashes on protobuf's objects:
    # skip it.
    gc.freeze()
    return code


def make_parser(prog: str) -> Parser:
    """Returns the parser of this command."""
    description = (
        f"Adds {TRANSFORM_FN}/ to a dataset that was converted with analyze: true or "
        "images.moments: true."
    )
    parser = reader_parser(prog, description, "the dataset's folder", EPILOG)
    height, width = DEFAULT_SIZE
    size = (
        "output size: HEIGHTxWIDTH, or one number for both (default: the images' own size if "
        f"equal, else {height}x{width})"
    )
    parser.add_argument("--size", type=_size, metavar="HEIGHTxWIDTH", help=size)
    parser.add_argument("--split", metavar="NAME", help="the split to learn from (default: train)")
    return parser


def _analyze(flags: argparse.Namespace) -> dict[str, Any]:
    started, path = time.monotonic(), current_folder(parse_path(flags.path))
    if not flags.verbose:
        # TensorFlow greets, and warns about missing GPUs.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        logging.getLogger("apache_beam").setLevel(logging.ERROR)
        logging.getLogger("absl").setLevel(logging.ERROR)
    folder = storage.join(path, TRANSFORM_FN)
    try:
        analysis = analyze_dataset(path, flags.split, flags.size)
    except RecordmillError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever TensorFlow or a store raises is reported in one sentence
        raise LoadError(
            f"{folder} cannot be made: {type(error).__name__}: {last_line(error)}"
        ) from None
    note = analysis.note
    message = f"{folder} already fits the dataset: nothing to do"
    if analysis.done:
        message = f"{folder} has been made from {note['images']:,} images of {note['split']}"
    make_console(quiet=flags.quiet).print(printable(message))
    return {
        "status": "analyzed" if analysis.done else "kept",
        "message": message,
        "transform_fn": folder,
        **{key: note[key] for key in ("plan", "split", "size", "images", "mean", "variance")},
        "seconds": {
            **{key: round(value, 3) for key, value in analysis.seconds.items()},
            "total": round(time.monotonic() - started, 3),
        },
    }


if __name__ == "__main__":
    sys.exit(main())
