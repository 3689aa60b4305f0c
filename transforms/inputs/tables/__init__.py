"""Typed columns: what the cells of a table must hold, and what becomes of them. One type a column."""
