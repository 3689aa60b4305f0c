"""`recordmill completion SHELL`: prints a script that completes commands and flags."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from recordmill.pipeline.configuration.options import Parser, build_parser
from recordmill.pipeline.terminal import Terminal
from recordmill.schemas.errors import DONE, RecordmillError

SHELLS = ("bash", "zsh", "fish")

READERS = ("verify", "inspect", "diff", "versions", "analyze")
"""The commands whose modules have `make_parser`."""

EPILOG = """\
examples:
  in bash, for this shell:
    eval "$(%(prog)s bash)"
  in bash, for all shells from now on:
    %(prog)s bash >>~/.bash_completion
  in zsh; in ~/.zshrc, `fpath=(~/.zfunc $fpath)` comes before `compinit`:
    mkdir -p ~/.zfunc && %(prog)s zsh >~/.zfunc/_recordmill
  in fish:
    mkdir -p ~/.config/fish/completions
    %(prog)s fish >~/.config/fish/completions/recordmill.fish

exit codes: 0 done   2 wrong usage
"""


def main(argv: Sequence[str] | None = None, prog: str = "python -m pipeline.completion") -> int:
    """Prints the script of one shell.

    Args:
        argv: the flags; by default, those of the process.
        prog: what the user typed before them.

    Returns:
        The exit code.
    """
    try:
        flags = make_parser(prog).parse_args(argv)
    except RecordmillError as error:
        Terminal(sys.stderr).say(f"error: {error}")
        return error.exit_code
    sys.stdout.write(write_completion(flags.shell))
    return DONE


def make_parser(prog: str) -> Parser:
    """Returns the parser of this command."""
    description = "Prints a script with which a shell completes commands and flags of recordmill."
    parser = Parser(prog=prog, description=description, epilog=EPILOG)
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
    return parser


def write_completion(shell: str) -> str:
    """Returns the script of a shell, one of `SHELLS`."""
    import shtab

    root = argparse.ArgumentParser(prog="recordmill")
    root.add_argument("--version", action="version", version="", help="print the version")
    commands = root.add_subparsers(dest="command")
    for name, parser in _parsers().items():
        for action in parser.arguments:
            if action.metavar in ("DIR", "[NAME=]DIR", "DATASET"):
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
            elif action.metavar in ("FILE", "PATH", "OTHER"):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        help_text = (parser.description or "").split(". ")[0]
        commands.add_parser(name, parents=[parser], add_help=False, help=help_text)
    return shtab.complete(root, shell)


def _parsers() -> dict[str, Parser]:
    run = build_parser("recordmill run")
    run.add_argument("places", nargs="*", metavar="DIR", help="inputs, and the output")
    parsers = {"run": run}
    for name in READERS:
        module = import_module(f"recordmill.pipeline.{name}")
        parsers[name] = module.make_parser(f"recordmill {name}")
    parsers["completion"] = make_parser("recordmill completion")
    return parsers
