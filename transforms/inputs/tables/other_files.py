"""Reads files besides an image's own, which may be in a cell of a table."""

from recordmill.schemas.image_ref import PARQUET_CELL, SourceFile
from recordmill.storage.packed_files import read_source_file


def read_other_file(file: SourceFile, max_bytes: int) -> bytes:
    """Reads the bytes of a file; arguments and errors as `read_image` and `read_parquet_cell`."""
    kind, _, column = file.packing.partition(":")
    if kind != PARQUET_CELL:
        return read_source_file(file, max_bytes)
    # Imported here: only cells need pyarrow.
    from recordmill.transforms.inputs.tables.parquet import read_parquet_cell

    return read_parquet_cell(file.as_reference, column, max_bytes)
