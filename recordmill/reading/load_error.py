"""What a reader says of a dataset that it cannot read."""


class LoadError(ValueError):
    """A dataset cannot be opened, or not read as asked; the message is one sentence that says why."""
