"""The commands and the launcher: configuration, flags, the terminal, and the chain of steps."""
