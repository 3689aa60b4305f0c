"""Examples that other programs wrote, read back by the convention that they follow."""
