"""What a plan's id stands for, of the settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Recipe:
    """A dataset's settings as text and plain values.

    Attributes:
        values: what decides the dataset's bytes.
        config_text: all of them as YAML: the content of `config.yaml`.
    """

    values: Mapping[str, Any]
    config_text: str = ""
