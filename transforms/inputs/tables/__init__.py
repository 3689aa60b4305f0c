"""Typed columns: what the cells of a table must hold, and what they become. One type per column."""
