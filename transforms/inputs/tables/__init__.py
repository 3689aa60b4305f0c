"""Tables row by row, and the types of their columns."""
