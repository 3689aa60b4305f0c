"""JSON lines, row by row."""

from collections.abc import Iterator
from typing import Any

import orjson

from recordmill.transforms.inputs.tables.row import Row
from recordmill.transforms.inputs.tables.text_lines import TextLines, read_rows


def read_jsonl_rows(lines: TextLines) -> Iterator[Row]:
    """A row for each line that is not empty; cells are a JSON object's values by name."""

    def read_cells() -> Any:
        if not (line := next(lines)).strip():
            return []
        try:
            cells = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise ValueError(f"it is not valid JSON: {error}") from None
        if not isinstance(cells, dict):
            raise ValueError(f"it is not a JSON object: {line.strip()!r:.60}")
        return cells

    return read_rows(lines, read_cells)
