"""Checks the result of a conversion that succeeded: a pure function that does not need Airflow."""

from collections.abc import Mapping, Sequence
from typing import Any


def find_problems(
    summary: Mapping[str, Any],
    marker: Mapping[str, Any],
    classes: Sequence[str] = (),
    max_rejected: float = 0.01,
) -> list[str]:
    """Finds reasons to stop the downstream tasks.

    Args:
        summary: the contents of `--summary-json`, or of `--outcome-file`, which has the numbers in
            a separate field.
        marker: the dataset's `recordmill.json`.
        classes: the class names that must have images.
        max_rejected: the largest acceptable share of rejected images.

    Returns:
        One sentence per problem; empty for a good dataset.
    """
    if summary["exit_code"] != 0 or summary["status"] not in ("published", "kept"):
        return [
            f"the conversion is {summary['status']} with exit code {summary['exit_code']}: "
            f"{summary['message']}"
        ]
    problems = []
    ledger = {**summary, **summary.get("numbers", {})}["ledger"]
    parts = [
        ledger["written"],
        *(sum(ledger[name].values()) for name in ("rejected", "ignored", "left_out")),
    ]
    if ledger["listed"] != sum(parts):
        problems.append(
            f"{ledger['listed']} were listed, and {' + '.join(map(str, parts))} are accounted for"
        )
    images, rejected = parts[0] + parts[1], parts[1]
    if rejected > max_rejected * images:
        problems.append(
            f"{rejected} of {images} images were rejected, more than {max_rejected:.2%}"
        )
    if not parts[0]:
        problems.append("no image was written")
    found: set[str] = set()
    for name, split in marker["splits"].items():
        found |= set(split["classes"])
        if not split["records"]:
            problems.append(f"the split {name} is empty")
    if marker["plan"]["id"] != summary["plan_id"]:
        problems.append(f"the dataset is of plan {marker['plan']['id']}, not {summary['plan_id']}")
    if missing := sorted(set(classes) - found):
        problems.append(f"no image is of the class {', '.join(missing)}")
    return problems
