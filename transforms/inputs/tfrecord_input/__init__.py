"""Examples that somebody else wrote, read back by the convention that they follow."""
