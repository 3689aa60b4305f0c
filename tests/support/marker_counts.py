"""Numbers of a marker, for tests that compare them."""

from collections.abc import Mapping
from typing import Any


def counts_of(marker: Mapping[str, Any], kind: str) -> dict[str, int]:
    """The annotations of a kind by outcome, in one mapping; without what is 0."""
    entry = marker["annotations"][kind]
    counts = {"listed": entry["listed"], "written": entry["written"]}
    counts |= {**entry["dropped"], **entry.get("noted", {})}
    return {name: count for name, count in counts.items() if count}
