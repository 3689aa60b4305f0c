"""The flags, which say where and how to run. YAML describes the dataset.

Our flags are spelled with hyphens, and accepted with underscores: Airflow and Dataflow's templates
name a flag after a key or parameter such as `outcome_file`. Beam's flags have underscores.

Every boolean has a `--no-` variant, since Airflow can only add flags, not omit them, and takes a
value, since Dataflow's templates cannot pass flags without one.
"""

import argparse
import difflib
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, Literal, NoReturn, Protocol

from recordmill.pipeline.configuration.positions import (
    InputsAndOutput,
    explain_stray,
    find_stray_word,
    is_flag,
    join_places,
    split_positions,
)
from recordmill.schemas.errors import UsageError
from recordmill.schemas.formatting import escape_json
from recordmill.schemas.pages import find_page
from recordmill.schemas.version import VERSION

MODULE = "python -m pipeline.run"
"""The command that, without arguments, converts the sample."""

IN_PROCESS_RUNNERS = ("DirectRunner", "FnApiRunner")
"""Runners that work in this process, and are done when `run` returns."""

LOCAL_RUNNERS = (*IN_PROCESS_RUNNERS, "PrismRunner")
"""Runners that work on this machine, in this process or in another."""

_NOT_BEAMS = ("reuse", "update", "versions", "plan", "overwrite", "against", "threads", "processes")
"""Flags without effect if Beam writes the files, which cannot be replaced, compared or resumed."""

EXAMPLES = """\
Before the first flag, INPUT and OUTPUT need none; the last of two or more is OUTPUT.

examples:
  a folder of class folders to train and test TFRecords; with --plan, it only shows what \
would be done:
    %(prog)s photos dataset
  other splits, every image re-encoded, no side over 512 pixels:
    %(prog)s photos resized \\
      --set 'splits.fractions={train: 0.8, validation: 0.1, test: 0.1}' \\
      --set images.reencode=always --set images.resize.longest=512

exit codes:
  0 done (or already there)   1 failed   2 wrong usage or configuration   3 too many rejected
  4 a check in `expect` failed   130, 143 stopped by a signal

Flags of Apache Beam and its runners (--temp_location, --flink_master, ...) may be given too.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """The flags of one conversion.

    Attributes:
        sample: whether to convert the sample; None: only if nothing else is named.
        input: folders and files, as the user wrote them.
        output: the dataset's folder.
        config: the configuration, if one is named.
        set: `key.path=value` overrides.
        keywords: the settings of a call in Python; None for a command.
        against: the dataset with which `expect` compares; None: the one in the output.
        plan: whether to only show what would be done.
        reuse: earlier datasets whose images may be stored again.
        update: whether to replace the dataset in the output, and to reuse its images.
        versions: whether the dataset gets a folder of its own below the output.
        overwrite: whether to replace another dataset.
        discard: whether to delete the unfinished work of earlier runs first.
        wait: whether to wait for a remote job.
        writer: what writes the files; see `RunSettings`.
        threads: images decoded at once in each process; 0 for one per processor.
        processes: processes that convert images on DirectRunner; 0 for as many as processors and
            memory allow.
        summary_json: a file to which the JSON summary is also written.
        outcome_file: the file to which the job itself writes its outcome; it is not deleted.
        quiet: whether only errors are written to stderr.
        verbose: whether messages of Beam and other libraries are shown, too.
        json: whether the JSON summary is written to stdout; None: unless that is a terminal.
        traceback: whether to show where an unexpected error comes from.
        runner: the name of a Beam runner.
        owns_process: whether the process was started for this conversion, and so may be forked.
        in_pipeline: whether the conversion is a part of a pipeline, which another program runs.
        beam_arguments: the flags of Beam and its runners.
    """

    sample: bool | None = None
    input: tuple[str, ...] = ()
    output: str = ""
    config: str | None = None
    set: tuple[str, ...] = ()
    keywords: Mapping[str, Any] | None = None
    against: str | None = None
    plan: bool = False
    reuse: tuple[str, ...] = ()
    update: bool = False
    versions: bool = False
    overwrite: bool = False
    discard: bool = False
    wait: bool = True
    writer: Literal["recordmill", "beam"] = "recordmill"
    threads: int = 0
    processes: int = 0
    summary_json: str | None = None
    outcome_file: str | None = None
    quiet: bool = False
    verbose: bool = False
    json: bool | None = None
    traceback: bool = False
    runner: str = "DirectRunner"
    owns_process: bool = True
    in_pipeline: bool = False
    beam_arguments: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """The flags that decide the dataset and its place, for a command to repeat."""
        named = [("--input", each) for each in self.input]
        named += [("--output", self.output)] if self.output else []
        named += [("--config", self.config)] if self.config else []
        named += [("--set", each) for each in self.set]
        named += [("--against", self.against)] if self.against else []
        named += [("--reuse", each) for each in self.reuse]
        switches = ("plan", "update", "versions", "overwrite")
        return (
            *chain.from_iterable(named),
            *(f"--{switch}" for switch in switches if getattr(self, switch)),
            *([f"--runner={self.runner}"] if self.runner != "DirectRunner" else []),
            *self.beam_arguments,
        )

    @property
    def is_here(self) -> bool:
        """Whether the job works on this machine."""
        return self.runner in LOCAL_RUNNERS


JSON_HELP = "write the JSON summary to stdout even if that is a terminal"
NO_JSON_HELP = "do not write the JSON summary"
QUIET_HELP = "write only errors to stderr"
"""What `--json` and `--no-json` do, in every command."""


class _FlagGroup(Protocol):
    """A parser, or a group of its flags."""

    def add_argument(self, *names: str, **settings: Any) -> argparse.Action: ...


class Parser(argparse.ArgumentParser):
    """Raises UsageError instead of ending the process, to be reported like all others.

    Attributes:
        arguments: all arguments, in the order of `--help`.
        flags: what `add_flag` added, in the same order.
    """

    def __init__(self, **settings: Any) -> None:
        """Takes what `argparse.ArgumentParser` takes.

        Examples keep their lines, and no flag may be abbreviated: Airflow always adds --labels=...
        """
        self.arguments: list[argparse.Action] = []
        self.flags: list[argparse.Action] = []
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **settings
        )

    def add_argument(
        self, *names: Any, section: _FlagGroup | None = None, **settings: Any
    ) -> argparse.Action:
        """Adds an argument as `argparse.ArgumentParser` does, or as the section does."""
        if section is None:
            added = super().add_argument(*names, **settings)
        else:
            added = section.add_argument(*names, **settings)
        self.arguments.append(added)
        return added

    def add_flag(
        self,
        name: str,
        section: _FlagGroup | None = None,
        short: str | None = None,
        **settings: Any,
    ) -> None:
        """Adds a flag of one name, whose hyphens may also be given as underscores.

        Args:
            name: the flag, with hyphens.
            section: the group in which `--help` shows it; None for none.
            short: a hyphen and a letter, for those who type the flag; None for none.
            settings: as `add_argument` takes them.
        """
        names = [name, short] if short else [name]
        self.flags.append(self.add_argument(*names, section=section, **settings))

    def flag_names(self) -> list[str]:
        """Returns the flags of `add_flag`, with hyphens."""
        return [*chain.from_iterable(action.option_strings for action in self.flags)]

    @property
    def actions(self) -> Mapping[str, argparse.Action]:
        """All flags by name."""
        return {name: each for each in self.arguments for name in each.option_strings}

    def parse_known_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        """Parses the flags, and returns what is unknown as it was given."""
        words = sys.argv[1:] if args is None else args
        return super().parse_known_args([*self.with_hyphens(words)], namespace)

    def parse_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        """Parses the flags.

        Raises:
            UsageError: a flag is unknown, or a word is left.
        """
        flags, rest = self.parse_known_args(args, namespace)
        if rest:
            raise UsageError(explain_unknown_flag(rest[0], self.actions))
        return flags

    def with_hyphens(self, words: Iterable[str]) -> Iterator[str]:
        """Yields the words, and our flags among them with hyphens.

        Raises:
            UsageError: a short flag has more letters: `-output` would be `-o` with the value
                `utput`.
        """
        known, rest = set(self.flag_names()), iter(words)
        for word in rest:
            if word == "--":  # only positional arguments follow
                yield word
                break
            flag, equals, value = word.partition("=")
            spelled = hyphenated(flag)
            if re.match(r"-[a-z][^=]", word) and word[:2] in known:
                raise UsageError(explain_unknown_flag(word, self.actions))
            yield spelled + equals + value if spelled in known else word
        yield from rest

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise UsageError(f"{message}: see --help")


def explain_unknown_flag(word: str, known: Iterable[str]) -> str:
    """Returns a sentence on a word that is not a flag, with the one that may be meant.

    Args:
        word: the word, with the value if `=` joins them.
        known: the flags, with hyphens.
    """
    near = _find_near_flag(word, known)
    if near is not None:
        return f"there is no flag {word}: did you mean {near}?"
    if is_flag(word):
        return f"there is no flag {word}: see --help"
    return f"{word} is one word too many: see --help"


def _find_near_flag(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Returns the flag that a word resembles; None if it resembles none.

    Args:
        word: the word, with the value if `=` joins them.
        known: the flags, with hyphens.
        cutoff: how similar a flag must be, from 0 to 1.
    """
    flag = hyphenated(word.partition("=")[0])
    return next(iter(difflib.get_close_matches(flag, sorted(known), 1, cutoff=cutoff)), None)


def hyphenated(flag: str) -> str:
    """Returns a flag as `--help` spells it, and another word as it is."""
    return f"--{flag[2:].replace('_', '-')}" if flag.startswith("--") else flag


def _add_flags_for_places(parser: Parser) -> None:
    data = parser.add_argument_group("what to convert")
    _add_switch(parser, data, "sample", "convert a sample of 250 generated pictures")
    inputs = (
        "a folder or file, on any of Beam's file systems; several need names, "
        "which keys then begin with"
    )
    parser.add_flag("--input", data, action="append", metavar="[NAME=]DIR", help=inputs)
    output = "the dataset's folder; must not be inside an input"
    _add_path(parser, data, "--output", output, "DIR", short="-o")
    config = (
        "YAML file of settings; -: standard input (default: auto, which recognizes the layout of "
        f"the input, see {find_page('layouts.md')})"
    )
    _add_path(parser, data, "--config", config, short="-c")
    override = "overrides one setting, with a value in YAML; repeatable"
    parser.add_flag("--set", data, action="append", metavar="KEY.PATH=VALUE", help=override)
    against = "the dataset with which `expect` compares (default: the one in the output)"
    _add_path(parser, data, "--against", against, "DATASET")
    reuse = "take unchanged images from an earlier dataset, without decoding them; repeatable"
    parser.add_flag(
        "--reuse", data, action="append", type=os.path.expanduser, metavar="DATASET", help=reuse
    )


def _add_flags_for_the_run(parser: Parser) -> None:
    run = parser.add_argument_group("how to run")
    plan = (
        "show counts, splits, shards and sizes, write nothing, "
        "and exit with the code the run would, as far as known"
    )
    _add_switch(parser, run, "plan", plan)
    # Not by `add_flag`: with an underscore and a value, it is Beam's flag.
    dry_run = "another name of --plan"
    parser.add_argument("--dry-run", section=run, action="store_true", dest="plan", help=dry_run)
    _add_switch(parser, run, "overwrite", "replace another dataset in the output")
    update = "update the dataset in the output: reuse unchanged images, convert the rest"
    _add_switch(parser, run, "update", update)
    versions = (
        "keep earlier datasets: publish in a folder below the output, "
        "and switch readers to it in one step"
    )
    _add_switch(parser, run, "versions", versions)
    discard = (
        "first delete the unfinished work of earlier runs there; "
        "a complete dataset whose publishing was interrupted is published instead"
    )
    _add_switch(parser, run, "discard", discard)
    no_wait = "exit as soon as a remote runner has accepted the job"
    _add_switch(parser, run, "wait", argparse.SUPPRESS, no_wait)
    writer = (
        "recordmill (default); beam: shuffle pixels, write with Beam's WriteToTFRecord "
        f"({find_page('beam_writer.md')})"
    )
    writers = ("recordmill", "beam")
    parser.add_flag("--writer", run, choices=writers, metavar="NAME", help=writer)
    threads = "images decoded at once in a process (default: one per processor)"
    parser.add_flag("--threads", run, type=positive, metavar="N", help=threads)
    processes = (
        "processes that convert images on DirectRunner "
        "(default: one per processor, unless --threads is given)"
    )
    parser.add_flag("--processes", run, type=positive, metavar="N", help=processes)


def _add_flags_for_reports(parser: Parser) -> None:
    reports = parser.add_argument_group("what to report")
    _add_result_files(parser, reports)
    _add_switch(parser, reports, "json", JSON_HELP, NO_JSON_HELP)
    _add_switch(parser, reports, "quiet", QUIET_HELP)
    verbose = "also show the messages of Beam, its runner and other libraries"
    _add_switch(parser, reports, "verbose", verbose)
    _add_switch(parser, reports, "traceback", "show where an unexpected error comes from")


def _add_result_files(parser: Parser, section: _FlagGroup) -> None:
    summary = "also write the JSON summary to this file"
    _add_path(parser, section, "--summary-json", summary)
    outcome = "the file to which the job itself writes its outcome; it is not deleted"
    _add_path(parser, section, "--outcome-file", outcome)


def check_quiet(quiet: bool, verbose: bool) -> None:
    """Makes sure that not both are asked for.

    Raises:
        UsageError: they are.
    """
    if quiet and verbose:
        raise UsageError("--quiet and --verbose contradict each other: remove one of them")


def write_json(line: str, asked: bool | None) -> None:
    """Writes a line of JSON to stdout, with control characters in texts escaped.

    Args:
        line: the line, without its end.
        asked: what `--json` or `--no-json` says; None: write it unless stdout is a terminal.
    """
    if not sys.stdout.isatty() if asked is None else asked:
        sys.stdout.write(escape_json(line) + "\n")
        sys.stdout.flush()


def _add_switch(
    parser: Parser,
    section: _FlagGroup,
    name: str,
    help_with: str,
    help_without: str = argparse.SUPPRESS,
) -> None:
    """Adds `--name` and `--no-name`, with the help of each.

    A value may follow `--name`, since Dataflow's templates give every flag one.
    """
    parser.add_flag(
        f"--{name}",
        section,
        nargs="?",
        type=_true_or_false,
        const=True,
        metavar="true|false",
        help=help_with,
    )
    parser.add_flag(f"--no-{name}", section, dest=name, action="store_false", help=help_without)


def _add_path(
    parser: Parser,
    section: _FlagGroup,
    flag: str,
    meaning: str,
    metavar: str = "FILE",
    short: str | None = None,
) -> None:
    parser.add_flag(flag, section, short, type=os.path.expanduser, metavar=metavar, help=meaning)


def _true_or_false(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text} is neither true nor false")
    return text.lower() == "true"


def positive(text: str) -> int:
    """Returns the value of a flag that takes a number of 1 or more."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not a number of 1 or more")
    return int(text)


def _known_runner(text: str) -> str:
    """Returns a local runner's full name; Beam also accepts `direct` and `directrunner`."""
    short = text.lower().removesuffix("runner")
    return next(
        (name for name in LOCAL_RUNNERS if name.lower().removesuffix("runner") == short), text
    )


def build_parser(prog: str = MODULE) -> Parser:
    """Returns the parser of a conversion's flags.

    Args:
        prog: what the user typed before them.
    """
    parser = Parser(
        prog=prog,
        usage="%(prog)s [INPUT ... OUTPUT] [flags]",
        description="Converts labeled images, tables or existing TFRecords into sharded TFRecord "
        "files, and accounts for every input file.",
        epilog=EXAMPLES,
        argument_default=argparse.SUPPRESS,  # `LaunchOptions` has the defaults
    )
    parser.add_argument("--version", action="version", version=f"recordmill {VERSION}")
    runners = (
        "DirectRunner (default), PrismRunner, PortableRunner, FlinkRunner, DataflowRunner, ..."
    )
    parser.add_flag("--runner", type=_known_runner, help=runners)
    _add_flags_for_places(parser)
    _add_flags_for_the_run(parser)
    _add_flags_for_reports(parser)
    return parser


def parse_options(argv: Sequence[str], prog: str = MODULE) -> LaunchOptions:
    """Parses flags; those of Beam are kept as they are.

    Args:
        argv: the words; those before the first flag are inputs and the output.
        prog: what the user typed before them.

    Raises:
        UsageError: a flag lacks its value or has a wrong one, or a word is not the value of a flag.
    """
    parser = build_parser(prog)
    positions, words = split_positions(argv)
    words = [*parser.with_hyphens(_find_dry_run(words))]
    words = [*_complete_switches(words, parser)]
    stray = find_stray_word(words, parser.actions)
    if stray is not None:
        raise UsageError(explain_stray(stray))
    flags, rest = parser.parse_known_args(words)
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in vars(flags).items()
    }
    options = LaunchOptions(**given, beam_arguments=tuple(rest))
    places = join_places(positions, InputsAndOutput(options.input, options.output or None))
    output = os.path.expanduser(places.output or "")
    return replace(options, input=places.inputs, output=output)


def _complete_switches(words: Sequence[str], parser: Parser) -> Iterator[str]:
    """Yields the words; a switch gets its value, unless `true` or `false` follows it."""
    for word, after in pairwise((*words, "")):
        action = parser.actions.get(word)
        is_switch = action is not None and action.nargs == "?"
        if is_switch and after.lower() not in ("true", "false"):
            yield f"{word}=true"
        else:
            yield word


def find_result_files(argv: Sequence[str]) -> LaunchOptions:
    """Returns options with only the files for the result, even if other flags are wrong."""
    parser = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    _add_result_files(parser, parser)
    try:
        flags, _ = parser.parse_known_args(argv)
    except UsageError:  # such a flag lacks its value
        return LaunchOptions()
    return LaunchOptions(**vars(flags))


def _find_dry_run(argv: Sequence[str]) -> Iterator[str]:
    """Yields the flags, with `--dry-run` for `--dry_run` without a value; with one, it is Beam's.

    Raises:
        UsageError: `--dry-run` has a value.
    """
    for word, after in pairwise((*argv, "--")):
        flag, equals, value = word.partition("=")
        has_value = bool(equals) or not after.startswith("-")
        if flag == "--dry-run" and has_value:
            raise UsageError(
                "--dry-run takes no value: write --dry-run to see the plan, "
                f"or --dry_run={value if equals else after} for the flag of Beam"
            )
        yield "--dry-run" if flag == "--dry_run" and not has_value else word


def check_options(options: LaunchOptions, prog: str = MODULE) -> LaunchOptions:
    """Checks options, and returns them with `sample` decided.

    Raises:
        UsageError: a flag is unknown or missing, or two contradict each other.
    """
    if unknown := find_unknown_flag(options.beam_arguments, elsewhere=not options.is_here):
        raise UsageError(unknown)
    check_quiet(options.quiet, options.verbose)
    if options.sample and options.input:
        raise UsageError("--sample and --input both name what to convert: remove one of them")
    if options.writer == "beam" and (
        idle := [f"--{name}" for name in _NOT_BEAMS if getattr(options, name)]
    ):
        raise UsageError(f"{idle[0]} has no effect with --writer=beam: remove it")
    sample = options.sample
    if sample is None:
        sample = prog == MODULE and not (options.input or options.output or options.config)
    if not options.input and not sample:
        raise UsageError("--input is missing: name the folder with the images, or try --sample")
    if not options.output and not sample:
        raise UsageError("--output is missing: name the folder for the dataset")
    return replace(options, sample=sample)


def find_unknown_flag(arguments: Sequence[str], elsewhere: bool = False) -> str | None:
    """Returns a sentence on the first argument that neither Recordmill nor Beam knows, or None.

    Beam is imported if there are arguments.

    Args:
        arguments: the arguments that Recordmill's parser does not know.
        elsewhere: whether a remote runner may know more flags; then only near misses of
            Recordmill's are reported, and Beam's with hyphens.
    """
    if not arguments:
        return None
    beams = _parser_of_beam()
    for word in _unknown_to(beams, arguments):
        sentence = _explain_word(word, beams, elsewhere)
        if sentence is not None:
            return sentence
    return None


def _explain_word(word: str, beams: argparse.ArgumentParser, elsewhere: bool) -> str | None:
    """Returns a sentence on a word that neither parser knows; None if a runner may know it."""
    flag = word.partition("=")[0]
    if not is_flag(word):
        return None if elsewhere else explain_stray(word)
    underscored = f"--{flag.lstrip('-').replace('-', '_')}"
    if not _unknown_to(beams, [underscored]):  # its value may be a secret
        return f"there is no flag {flag}: did you mean {underscored}?"
    ours = build_parser().actions
    if elsewhere:  # the runner may know the flag, so only a small slip is one
        near = _find_near_flag(word, ours, _SLIP)
        return None if near is None else f"there is no flag {word}: did you mean {near}?"
    spelled = {hyphenated(name): name for name in _flags_of(beams)}
    near = _find_near_flag(word, spelled, _SLIP)
    if near is not None and near not in ours:
        return f"there is no flag {flag}: did you mean {spelled[near]}?"
    return explain_unknown_flag(word, ours)


_SLIP = 0.85
"""How similar a flag is if no other can be meant."""


def _flags_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yields the flags in the help of a parser."""
    for line in parser.format_help().splitlines():
        if line.startswith("  -"):
            names = line.strip().partition("  ")[0]  # an explanation may follow
            yield from re.findall(r"(?<!\S)--?[\w-]+", names)


def _parser_of_beam() -> argparse.ArgumentParser:
    """Returns Beam's own parser of the flags of Beam and its runners."""
    from apache_beam.options.pipeline_options import PipelineOptions

    parsers: list[argparse.ArgumentParser] = []
    PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
    return parsers[0]


def _unknown_to(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> list[str]:
    """Returns the arguments that a parser does not know; none if it refuses a value.

    The launcher reports such a value when it makes the pipeline.
    """
    try:
        with redirect_stderr(io.StringIO()):
            return parser.parse_known_args(arguments)[1]
    except SystemExit:
        return []
