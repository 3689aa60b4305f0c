"""The launcher's side: configuration, flags, the terminal, and the chain of steps."""
