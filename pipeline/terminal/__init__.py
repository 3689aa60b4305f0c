"""The output for people, during and after a command."""
