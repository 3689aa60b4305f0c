"""Writes deploy/dataflow/metadata.json, with the flex template's parameters, from our flags."""

import argparse
import json
from pathlib import Path
from typing import Any

from recordmill.pipeline.configuration.options import LaunchOptions, build_parser

PATH = Path(__file__).parent.parent / "deploy" / "dataflow" / "metadata.json"

NOT_FOR_TEMPLATES = {
    "runner",
    "sample",
    "plan",
    "processes",
    "wait",
    "summary_json",
    "json",
    "quiet",
    "verbose",
    "traceback",
}
"""Flags that the service sets itself, or that only affect the launcher's log."""

KINDS = {
    "input": "GCS_READ_FOLDER",
    "output": "GCS_WRITE_FOLDER",
    "outcome_file": "GCS_WRITE_FILE",
    "threads": "NUMBER",
}
REQUIRED = {"input", "output", "sdk_container_image"}
IMAGE = "the image of this template, which the workers run too"


def describe_parameters() -> list[dict[str, Any]]:
    """One row per parameter, in the order of `--help`."""
    actions = [action for action in build_parser().flags if action.dest not in NOT_FOR_TEMPLATES]
    rows = [
        _describe(action) for action in actions if not action.option_strings[0].startswith("--no-")
    ]
    return [*rows, _row("sdk_container_image", IMAGE, "TEXT")]


def _describe(action: argparse.Action) -> dict[str, Any]:
    text = str(action.help)
    if isinstance(getattr(LaunchOptions(), action.dest), tuple):  # repeatable
        text = f"{text.partition(';')[0]}; a template takes one"
    return _row(
        action.dest, text, "BOOLEAN" if action.nargs == "?" else KINDS.get(action.dest, "TEXT")
    )


def _row(name: str, text: str, kind: str) -> dict[str, Any]:
    help_text = text[0].upper() + text[1:] + "."
    label = name.replace("_", " ").capitalize()
    return {
        "name": name,
        "label": label,
        "helpText": help_text,
        "paramType": kind,
        "isOptional": name not in REQUIRED,
    }


def metadata() -> str:
    """The file's text."""
    metadata = {
        "name": "Recordmill",
        "description": build_parser().description,
        "parameters": describe_parameters(),
    }
    return json.dumps(metadata, indent=2) + "\n"


def main() -> None:
    """Writes the file."""
    PATH.write_text(metadata(), encoding="utf-8")


if __name__ == "__main__":
    main()
