"""Formats numbers, lists of names and untrusted text for people."""

from collections.abc import Iterable


def format_count(number: int, thing: str) -> str:
    """`1 image`, `2,000 images`; for nouns whose plural ends in s, or in es after s, x and ch."""
    plural = f"{thing}es" if thing.endswith(("s", "x", "ch")) else f"{thing}s"
    return f"{number:,} {thing if number == 1 else plural}"


def format_size(count: float) -> str:
    """A size in units of 1024: `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"


def show_names(names: Iterable[str], most: int = 5) -> str:
    """The first names, without empty ones; dots if there are more: `cat, dog, ...`."""
    shown = [name for name in names if name]
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")


def printable(text: str) -> str:
    r"""The text with control characters, direction marks and invalid UTF-8 escaped as `\x1b`, `\u202e`, ..."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def last_line(error: Exception) -> str:
    """The end of an error's text, where runners put the reason; its class if there is no text."""
    last = (str(error).strip().splitlines() or [type(error).__name__])[-1]
    return last if len(last) < 300 else f"{last[:300]}..."
