"""Types of numbers with bounds, and the fields of settings that were added later.

Later means after datasets had been published.

Bounds are checked when settings are read from YAML, not when Python code makes them.
"""

from collections.abc import Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from typing import Annotated, Any

from annotated_types import Ge, Interval, MaxLen

_ADDED = "added"


def added_setting(default: Any = MISSING, *, default_factory: Any = MISSING) -> Any:
    """Returns a settings field whose key is in a recipe only if its value is not the default.

    A plan id is a digest of the recipe. Without this, a new key would change the id of every
    dataset of an earlier version. Use it for each setting added to a dataclass after commit
    357e673; for a new dataclass that is itself the value of an added setting, only that setting
    needs it.
    """
    return field(default=default, default_factory=default_factory, metadata={_ADDED: True})


def leave_out_added(settings: Any) -> Any:
    """Returns settings as plain values, without added settings that have their default.

    The values are as `dataclasses.asdict` gives them.

    Args:
        settings: a settings dataclass, or a value in one.
    """
    if is_dataclass(settings):
        values = [(each, getattr(settings, each.name)) for each in fields(settings)]
        kept = (
            (each, value)
            for each, value in values
            if _ADDED not in each.metadata or value != _default_of(each)
        )
        return {each.name: leave_out_added(value) for each, value in kept}
    if isinstance(settings, Mapping):
        return {key: leave_out_added(value) for key, value in settings.items()}
    return tuple(map(leave_out_added, settings)) if isinstance(settings, list | tuple) else settings


def _default_of(each: Any) -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()


AtLeastOne = Annotated[int, Ge(1)]
Count = Annotated[int, Ge(0)]
ClassId = Annotated[int, Interval(ge=-(2**62), le=2**62)]
"""The id of a first class, such that all others fit in 64 bits."""
Percent = Annotated[float, Interval(ge=0, le=1_000_000)]
Share = Annotated[float, Interval(ge=0, le=1)]
Shape = Annotated[tuple[None, ...], MaxLen(1)]
"""`[]` for one value, or `[null]` for any number of them."""
PositiveShare = Annotated[float, Interval(gt=0, le=1)]
