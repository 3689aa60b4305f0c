"""Jinja templates of documents about a dataset: each is in the package that fills it."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from recordmill.schemas.dataset.annotation_counts import most_frequent
from recordmill.schemas.formatting import format_count, format_size, show_names

if TYPE_CHECKING:
    from jinja2 import Template


@cache
def load_template(package: str, file: str, /, **filters: Callable[..., str]) -> "Template":
    """A template, with filters for counts and names, and these.

    HTML is escaped. In other documents, the line break after a block tag is dropped.

    Args:
        package: the package that the file is in.
        file: its name; if it ends in `.html.jinja`, the document is HTML.
        filters: by name.
    """
    # Imported here: it takes 0.07 s, which a process that writes no document need not spend.
    import jinja2

    is_html = file.endswith(".html.jinja")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package, ""),
        autoescape=is_html,
        trim_blocks=not is_html,
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
