"""Whether labels are among a dataset's ids."""

from recordmill.reading.example_walk import Content, entry_values, feature_entry
from recordmill.reading.expectations import Expectations


class LabelRange:
    """Judges the labels of records; each distinct feature is understood once."""

    def __init__(self, expected: Expectations) -> None:
        self._keys, self._ids = expected.label_keys if expected.label_ids else (), expected.label_ids
        self._known: dict[bytes, str] = {}

    def judge(self, data: memoryview, content: Content) -> str:
        """What is wrong with the first wrong label; the empty string if none is, or nothing is known of labels."""
        for key in self._keys:
            entry = feature_entry(data, content, key)
            if entry is not None:
                problem = self._known.get(entry)
                if problem is None:
                    problem = self._judge(key, entry)
                    if len(self._known) < 10_000:  # lists of labels may all be different
                        self._known[entry] = problem
                if problem:
                    return problem
        return ""

    def _judge(self, key: str, entry: bytes) -> str:
        values = entry_values(entry, key)  # where they are text, they are names and no ids
        wrong = [value for value in values if isinstance(value, int) and value not in self._ids]
        if not wrong:
            return ""
        span = f"{min(self._ids):,} to {max(self._ids):,}"
        return f"the label is {wrong[0]!r:.40}, none of the {len(self._ids):,} ids from {span} ({key})"
