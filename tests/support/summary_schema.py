"""The documented schema of the JSON summary."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

PATH = Path(__file__).parents[2] / "docs/json_summary.schema.json"


@cache
def read_schema() -> dict[str, Any]:
    """The schema, which is valid itself."""
    schema: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def check_summary(line: dict[str, Any]) -> dict[str, Any]:
    """Returns a summary that fits the schema; fails a test with all others."""
    problems = [
        f"{error.json_path}: {error.message}"
        for error in jsonschema.Draft202012Validator(read_schema()).iter_errors(line)
    ]
    assert not problems, "; ".join(problems)
    return line
