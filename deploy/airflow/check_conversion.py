"""What may be wrong with a conversion that ended well: a pure function, which needs no Airflow."""

from collections.abc import Mapping, Sequence
from typing import Any


def find_problems(
    told: Mapping[str, Any], marker: Mapping[str, Any], classes: Sequence[str] = (), max_rejected: float = 0.01
) -> list[str]:
    """Looks for what should stop the tasks that follow.

    Args:
        told: what `--summary_json` wrote, or `--outcome_file`, which has the numbers in a field of their own.
        marker: the dataset's `recordmill.json`.
        classes: the class names that must have images.
        max_rejected: the greatest share of the images that may have been rejected.

    Returns:
        One sentence a problem; none for a good dataset.
    """
    if told["exit_code"] != 0 or told["status"] not in ("published", "kept"):
        return [f"the conversion is {told['status']} with exit code {told['exit_code']}: {told['sentence']}"]
    problems = []
    ledger = {**told, **told.get("numbers", {})}["ledger"]
    parts = [ledger["written"], *(sum(ledger[name].values()) for name in ("rejected", "ignored", "left_out"))]
    if ledger["listed"] != sum(parts):
        problems.append(f"{ledger['listed']} were listed, and {' + '.join(map(str, parts))} are accounted for")
    images, rejected = parts[0] + parts[1], parts[1]
    if rejected > max_rejected * images:
        problems.append(f"{rejected} of {images} images were rejected, more than {max_rejected:.2%}")
    if not parts[0]:
        problems.append("no image was written")
    found: set[str] = set()
    for name, split in marker["splits"].items():
        found |= set(split["classes"])
        if not split["records"]:
            problems.append(f"the split {name} is empty")
    if marker["plan"]["id"] != told["plan_id"]:
        problems.append(f"the dataset is of plan {marker['plan']['id']}, not {told['plan_id']}")
    if missing := sorted(set(classes) - found):
        problems.append(f"no image is of the class {', '.join(missing)}")
    return problems
