"""Formats numbers, lists of names, untrusted text and documents for people.

The documents are Jinja templates, each in the package that fills it.
"""

import html
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING


def plural_of(thing: str) -> str:
    """Returns the plural of a noun whose plural ends in s, or in es after s, x and ch.

    `classes`.
    """
    if thing.endswith(("s", "x", "ch")):
        return f"{thing}es"
    return f"{thing}s"


def format_count(number: int, thing: str) -> str:
    """Returns `1 image`, `2,000 images`; for nouns as in `plural_of`."""
    return f"{number:,} {thing if number == 1 else plural_of(thing)}"


_PLURALS = {
    "is": "are",
    "was": "were",
    "has": "have",
    "does": "do",
    "uses": "use",
    "it": "them",
    "class": "classes",
}


def agree(number: int, word: str) -> str:
    """Returns a word as it goes with a number: `is` or `are`; it is given in the singular."""
    if number == 1:
        return word
    return _PLURALS[word]


def say_count(number: int, thing: str, verb: str) -> str:
    """Returns a count as the subject of a sentence, such as `1 image is` or `2 images are`.

    `verb` is in the singular.
    """
    return f"{format_count(number, thing)} {agree(number, verb)}"


def format_size(count: float) -> str:
    """Returns a size in units of 1024: `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            if unit == "B":
                return f"{count:,.0f} {unit}"
            return f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"


def show_names(names: Iterable[str], most: int = 5) -> str:
    """Returns the first names, without empty ones; dots if there are more: `cat, dog, ...`."""
    shown = [name for name in names if name]
    if len(shown) > most:
        shown[most:] = ["..."]
    return ", ".join(shown)


def show_first(names: Iterable[str], most: int = 8) -> str:
    """Returns the first names, and the number of the others: `a, b and 130 more`."""
    shown = list(names)
    if len(shown) <= most + 1:
        return ", ".join(shown)
    return f"{', '.join(shown[:most])} and {len(shown) - most:,} more"


def most_frequent(counts: Mapping[str, int]) -> list[str]:
    """Names sorted by count, largest first, then by code point."""
    return sorted(counts, key=lambda name: (-counts[name], name))


def printable(text: str) -> str:
    r"""Returns the text with characters that are not printable escaped, such as `\x1b`.

    These are control characters, direction marks (`\u202e`) and invalid UTF-8.
    """
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""C0 and C1 without tabs and line feeds, other line breaks, direction marks, and invalid UTF-8."""


def escape_controls(text: str) -> str:
    r"""Returns a text of several lines with its control characters escaped, such as `\x1b`.

    Unlike `printable`, it leaves line feeds, tabs and whatever only joins or spaces letters.
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escape_json(line: str) -> str:
    """Returns a line of JSON that says the same without any control character."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def show_text(text: str) -> str:
    """Escapes text so that Markdown and HTML show it unchanged, on one line."""
    escaped = re.sub(r"([\\`*_{}\[\]|~])", r"\\\1", " ".join(text.split()))
    escaped = re.sub(r"^(\d*)([-+#=.)])", r"\1\\\2", escaped)  # the start of a list or heading
    return html.escape(escaped, quote=False)


def last_line(error: Exception) -> str:
    """Returns the end of an error's text, where runners put the reason.

    Its class if there is no text.
    """
    last = (str(error).strip().splitlines() or [type(error).__name__])[-1]
    if len(last) < 300:
        return last
    return f"{last[:300]}..."


if TYPE_CHECKING:
    from jinja2 import Template


@cache
def load_template(package: str, file: str, /, **filters: Callable[..., str]) -> "Template":
    """Loads a template, with filters for counts and names, and the given ones.

    HTML and SVG are escaped. In other documents, the line break after a block tag is dropped.

    Args:
        package: the package that the file is in.
        file: its name, which ends in `.html.jinja` if the document is HTML, and in `.svg.jinja` if
            it is SVG.
        filters: by name.
    """
    # Imported here: it takes 0.07 s, and most processes write no document.
    import jinja2

    is_markup = file.endswith((".html.jinja", ".svg.jinja"))
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package, ""),
        autoescape=is_markup,
        trim_blocks=not is_markup,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "bytes": format_size,
        "classes": lambda counts: show_names(most_frequent(counts)),
        "count": format_count,
        "number": "{:,}".format,
        "plural": lambda number, thing: format_count(number, thing).split()[1],
        "words": lambda name: name.replace("_", " "),
        **filters,
    }
    return environment.get_template(file)
