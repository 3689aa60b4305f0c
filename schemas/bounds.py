"""Numbers with bounds. They are checked where settings are read from YAML, not where Python code makes them."""

from typing import Annotated

from annotated_types import Ge, Interval

AtLeastOne = Annotated[int, Ge(1)]
Count = Annotated[int, Ge(0)]
ClassId = Annotated[int, Interval(ge=-(2**62), le=2**62)]
"""The id of a first class: all others still fit in 64 bits."""
Percent = Annotated[float, Interval(ge=0, le=1_000_000)]
Share = Annotated[float, Interval(ge=0, le=1)]
