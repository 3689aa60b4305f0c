"""The command line that scripts/flink and scripts/spark have in common."""

import argparse
import json
import sys
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from scripts.local_processes import MissingError, Processes


def ask_json(port: int, path: str) -> Any:
    """Returns what a process on this machine answers in JSON."""
    with urllib.request.urlopen(f"http://localhost:{port}/{path}", timeout=10) as answer:
        return json.load(answer)


def show_processes(processes: Processes, master: str, say_free: Callable[[], str]) -> None:
    """Prints the names of the running processes, and what is free.

    Args:
        processes: those of the cluster.
        master: the process that knows what is free.
        say_free: asks it.
    """
    names = processes.running()
    for name in names:
        sys.stdout.write(f"{name}\n")
    if master in names:
        sys.stderr.write(f"{say_free()}\n")


def cluster_parser(script: str, description: str | None) -> argparse.ArgumentParser:
    """Returns a parser without flags for the command of a script."""
    return argparse.ArgumentParser(
        script, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def run_command(
    parser: argparse.ArgumentParser, commands: Mapping[str, Callable[[argparse.Namespace], None]]
) -> None:
    """Runs the command that is given; exits with 1 and one sentence if it fails.

    Args:
        parser: knows the flags.
        commands: what to do with the flags, by the name of the command.
    """
    parser.add_argument("command", choices=tuple(commands))
    arguments = parser.parse_args()
    try:
        commands[arguments.command](arguments)
    except (MissingError, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")
