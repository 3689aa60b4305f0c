"""The error of readers."""


class LoadError(ValueError):
    """A dataset cannot be opened, or not read as requested; the message says why in one sentence."""
