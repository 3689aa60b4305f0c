"""JSON lines, row by row."""

from collections.abc import Iterator

import orjson

from recordmill.transforms.inputs.tables.row import Row
from recordmill.transforms.inputs.tables.text_lines import TextLines


def read_jsonl_rows(lines: TextLines) -> Iterator[Row]:
    """Yields a row for each line that is not empty; cells are a JSON object's values by name."""
    while True:
        offset, _ = lines.begin_row()
        line, fault = "", ""
        cells = None
        try:
            line = next(lines)
        except StopIteration:
            return
        except UnicodeDecodeError:
            fault = f"it is not in {lines.codec}"
        if not fault and not line.strip():
            continue
        if not fault:
            try:
                cells = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                fault = f"it is no JSON: {error}"
        if not fault and not isinstance(cells, dict):
            cells, fault = None, f"it is no JSON object: {line.strip()!r:.60}"
        yield Row(lines.number, cells, offset, lines.end - offset, fault)
