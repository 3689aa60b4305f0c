"""Tables, row by row: CSV, TSV, JSON lines, Parquet. Memory does not grow with a table's length."""
