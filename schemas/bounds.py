"""Numbers with bounds, which are checked where settings are read from YAML."""

from typing import Annotated

from annotated_types import Ge, Gt, Interval

AtLeastOne = Annotated[int, Ge(1)]
Count = Annotated[int, Ge(0)]
ClassId = Annotated[int, Interval(ge=-(2**62), le=2**62)]
"""The id of a first class: all others still fit in 64 bits."""
Fraction = Annotated[float, Gt(0), Interval(le=1)]
Share = Annotated[float, Interval(ge=0, le=1)]
