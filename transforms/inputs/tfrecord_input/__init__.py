"""Reads Examples that other programs wrote, by the convention that they follow."""
