"""The flags: where and how a run works. What the dataset is stands in YAML.

Every boolean has a `--no_` twin, since Airflow can only give flags, not leave them out, and takes a value, since
templates of Dataflow cannot give flags without one.
"""

import argparse
import difflib
import os
from collections.abc import Sequence
from typing import NoReturn

from apache_beam.options.pipeline_options import PipelineOptions

from recordmill.pipeline.preflight import UsageError

IN_PROCESS_RUNNERS = ("DirectRunner", "FnApiRunner")
"""Runners that are done when they have started: they work in this process."""

LOCAL_RUNNERS = (*IN_PROCESS_RUNNERS, "PrismRunner")
"""Runners that work on this machine, in or beside this process."""

EXAMPLES = """\
examples:
  a folder of class folders to train and test TFRecords:
    python -m pipeline.run --input photos --output dataset
  what would be done, without doing it:
    python -m pipeline.run --input photos --output dataset --plan
  other splits, every image re-encoded, no side over 512 pixels:
    python -m pipeline.run --input photos --output dataset \\
      --set 'splits.fractions={train: 0.8, validation: 0.1, test: 0.1}' \\
      --set images.reencode=always --set images.resize.longest=512
  labels in file names (img_00017_3.jpg), a configuration of your own, a bucket:
    python -m pipeline.run --config configs/filename_labels.yaml --input gs://bucket/raw --output gs://bucket/dataset

exit codes:
  0 done (or already there)   1 failed   2 wrong usage or configuration   3 too many rejected
  130, 143 stopped by a signal

Flags of Apache Beam and its runners (--temp_location, --flink_master, ...) may be given too.
"""


class Parser(argparse.ArgumentParser):
    """Says what is wrong as every other error is said, instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise UsageError(f"{message}: see --help")


def _add_flags(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("what to convert")
    data.add_argument(
        "--input",
        action="append",
        metavar="[NAME=]DIR",
        help="a folder or file, on any of Beam's file systems; several need names, which keys then begin with",
    )
    data.add_argument(
        "--output", type=os.path.expanduser, metavar="DIR", help="the dataset's folder; must not lie inside an input"
    )
    data.add_argument(
        "--config",
        type=os.path.expanduser,
        metavar="FILE",
        help="what the dataset is, as YAML (default: class folders)",
    )
    data.add_argument(
        "--set", action="append", metavar="KEY.PATH=VALUE", help="overrides one setting, the value in YAML; repeatable"
    )
    run = parser.add_argument_group("how to run")
    _add_switch(run, "plan", "show counts, splits, shards and sizes, and write nothing")
    _add_switch(run, "overwrite", "replace another dataset that the output holds")
    _add_switch(
        run,
        "discard",
        "first delete the unfinished work of earlier runs there; a complete dataset whose publishing was cut is "
        "put in place instead",
    )
    _add_switch(run, "wait", default=True, help_without="leave once a runner elsewhere has the job")
    run.add_argument(
        "--threads", type=_positive, default=0, metavar="N", help="images decoded at once (default: one a processor)"
    )
    told = parser.add_argument_group("what is told")
    told.add_argument(
        "--summary_json",
        type=os.path.expanduser,
        metavar="FILE",
        help="also write the JSON of the last line to this file",
    )
    told.add_argument(
        "--outcome_file",
        type=os.path.expanduser,
        metavar="FILE",
        help="where the job itself writes how it ended, and leaves it",
    )
    _add_switch(told, "traceback", "show where an unexpected error comes from")


def _add_switch(
    group: argparse._ArgumentGroup,
    name: str,
    help_with: str = argparse.SUPPRESS,
    default: bool = False,
    help_without: str = argparse.SUPPRESS,
) -> None:
    """Adds `--name` and `--no_name`; a value may follow, since templates of Dataflow give every flag one."""
    group.add_argument(
        f"--{name}",
        nargs="?",
        type=_true_or_false,
        const=True,
        default=default,
        metavar="true|false",
        help=help_with,
    )
    group.add_argument(f"--no_{name}", dest=name, action="store_false", help=help_without)


def _true_or_false(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text} is neither true nor false")
    return text.lower() == "true"


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is no number of 1 or more")
    return int(text)


def _known_runner(text: str) -> str:
    """A local runner's full name; Beam takes `direct` and `directrunner` for one too."""
    short = text.lower().removesuffix("runner")
    return next((name for name in LOCAL_RUNNERS if name.lower().removesuffix("runner") == short), text)


def build_parser(version: str) -> argparse.ArgumentParser:
    """The parser of `python -m pipeline.run`."""
    parser = Parser(
        prog="python -m pipeline.run",
        description="Turns image and label collections into sharded TFRecords of tf.train.Example.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # Airflow always adds --labels=..., which an abbreviation would match
    )
    parser.add_argument("--version", action="version", version=f"recordmill {version}")
    parser.add_argument(
        "--runner",
        default="DirectRunner",
        type=_known_runner,
        help="DirectRunner (default), PrismRunner, PortableRunner, FlinkRunner, DataflowRunner, ...",
    )
    _add_flags(parser)
    return parser


def find_unknown_flag(arguments: Sequence[str], elsewhere: bool = False) -> str:
    """A sentence on the first argument that neither Recordmill nor Beam knows; the empty string if there is none.

    Args:
        arguments: what Recordmill's own parser left over.
        elsewhere: whether a runner elsewhere may know more: then only a flag that is nearly one of ours is unknown.
    """
    beams = Parser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    for options in PipelineOptions.__subclasses__():
        options._add_argparse_args(beams)  # type: ignore[arg-type]  # Beam's own parser adds ValueProviders only
    try:
        _, unknown = beams.parse_known_args(list(arguments))
    except UsageError as error:
        return str(error)
    ours = [flag for action in build_parser("")._actions for flag in action.option_strings]
    for word in unknown:
        near = difflib.get_close_matches(word.partition("=")[0], ours, 1, cutoff=0.85 if elsewhere else 0.6)
        if near or not elsewhere:
            return f"there is no flag {word}" + (f": did you mean {near[0]}?" if near else ": see --help")
    return ""
