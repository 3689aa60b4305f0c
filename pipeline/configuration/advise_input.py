"""The flags that convert one folder of an input, with what the user ignores in it."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from recordmill.pipeline.configuration.config import flags_of
from recordmill.transforms.inputs.patterns import move_patterns


def advise_input(
    place: str, folder: str, ignored: Sequence[str], more: Mapping[str, Any] | None = None
) -> str:
    """Returns the flags that make a folder the input.

    Args:
        place: the path of the present input.
        folder: the folder below it.
        ignored: the patterns of `ignore` that the user has given, for the present input.
        more: further settings.
    """
    flags = f"--input {shlex.quote(f'{place}/{folder}')}"
    moved = move_patterns(ignored, folder)
    settings: dict[str, Any] = {**(more or {})}
    if moved and moved != list(ignored):
        settings["ignore"] = moved
    return f"{flags} {flags_of(settings)}" if settings else flags
