"""Whether labels are among a dataset's ids."""

from reading.example_walk import Content, entry_values, feature_entry
from reading.expectations import Expectations


class LabelRange:
    """Judges the labels of records; each distinct feature is understood once."""

    def __init__(self, expected: Expectations) -> None:
        self._key, self._ids = expected.label_key, expected.label_ids
        self._known: dict[bytes, str] = {}

    def judge(self, data: memoryview, content: Content) -> str:
        """What is wrong with a record's label; the empty string if nothing is, or nothing is known of labels."""
        if not self._ids or (entry := feature_entry(data, content, self._key)) is None:
            return ""
        problem = self._known.get(entry)
        if problem is None:
            problem = self._judge(entry)
            if len(self._known) < 10_000:  # lists of labels may all be different
                self._known[entry] = problem
        return problem

    def _judge(self, entry: bytes) -> str:
        wrong = [value for value in entry_values(entry, self._key) if value not in self._ids]
        if not wrong:
            return ""
        span = f"{min(self._ids):,} to {max(self._ids):,}"
        return f"the label is {wrong[0]!r:.40}, none of the {len(self._ids):,} ids from {span} ({self._key})"
