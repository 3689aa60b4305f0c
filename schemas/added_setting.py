"""Settings that were added after datasets had been published: their default does not change plan ids."""

from collections.abc import Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from typing import Any

_ADDED = "added"


def added_setting(default: Any = MISSING, *, default_factory: Any = MISSING) -> Any:
    """A field of a settings dataclass whose key is in a dataset's recipe only if its value is not the default.

    A plan id is a digest of the recipe. Without this, a new key would change the id of every dataset of an
    earlier version. Use it for each setting added to a dataclass after commit 357e673; a new dataclass that is itself
    the value of an added setting needs it on that setting alone.
    """
    return field(default=default, default_factory=default_factory, metadata={_ADDED: True})


def leave_out_added(settings: Any, plain: Any) -> Any:
    """The plain values of settings without added settings that have their default.

    Args:
        settings: a settings dataclass, or what is below one.
        plain: the same as plain values, as `dataclasses.asdict` gives them; keys that `settings` has not are kept.
    """
    if is_dataclass(settings) and isinstance(plain, dict):
        kept = dict(plain)
        for each in fields(settings):
            if each.name in kept:
                value = getattr(settings, each.name)
                if each.metadata.get(_ADDED) and value == _default_of(each):
                    del kept[each.name]
                else:
                    kept[each.name] = leave_out_added(value, kept[each.name])
        return kept
    if isinstance(settings, Mapping) and isinstance(plain, dict):
        return {key: leave_out_added(settings[key], each) if key in settings else each for key, each in plain.items()}
    if isinstance(settings, list | tuple) and isinstance(plain, list | tuple):
        return type(plain)(leave_out_added(*both) for both in zip(settings, plain, strict=True))
    return plain


def _default_of(each: Any) -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()
