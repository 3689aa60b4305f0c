"""What archives hold: their members, found by reading headers only."""
