"""What conversions on clusters have in common: their settings and flags, and what is compared."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

SETTINGS: dict[str, Any] = {
    "shards.count": 6,
    "splits.fractions": {"train": 0.6, "test": 0.4},
    "images.reencode": "always",
}


def flags_for(source: Path, output: Path, *flags: str) -> list[str]:
    """Returns the flags of a conversion with `SETTINGS`."""
    sets = [f"--set={key}={json.dumps(value)}" for key, value in SETTINGS.items()]
    return [f"--input={source}", f"--output={output}", "--threads=1", *sets, *flags]


def finished_shards(output: Path) -> int:
    """Returns the number of shards that a run that was not published has finished."""
    return len(list(output.glob(".staging-*/*.done.json")))


def assert_same(output: Path, reference: Any) -> dict[str, Any]:
    """Compares every file with a reference, and returns the marker.

    The marker and the report may differ in what they say of the run.
    """
    other = replace(reference, output=output)
    assert other.files == reference.files
    for name in other.files - {"recordmill.json", "report.html"}:
        assert (output / name).read_bytes() == (reference.output / name).read_bytes(), name
    assert other.lasting_report == reference.lasting_report
    assert other.lasting_marker == reference.lasting_marker
    return other.marker
