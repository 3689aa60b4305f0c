"""Types of numbers with bounds.

Bounds are checked when settings are read from YAML, not when Python code makes them.
"""

from collections.abc import Mapping
from typing import Annotated

from annotated_types import Ge, Interval, MaxLen

STRICT: Mapping[str, object] = {"extra": "forbid", "arbitrary_types_allowed": True}
"""How pydantic reads a class of settings: an unknown key in it, or anywhere below, is an error."""

AtLeastOne = Annotated[int, Ge(1)]
Count = Annotated[int, Ge(0)]
ClassId = Annotated[int, Interval(ge=-(2**62), le=2**62)]
"""The id of a first class, such that all others fit in 64 bits."""
Percent = Annotated[float, Interval(ge=0, le=1_000_000)]
Share = Annotated[float, Interval(ge=0, le=1)]
FeatureShape = Annotated[tuple[None, ...], MaxLen(1)]
"""`[]` for one value, or `[null]` for any number of them."""
PositiveShare = Annotated[float, Interval(gt=0, le=1)]
