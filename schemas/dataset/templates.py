"""Jinja templates of documents about a dataset: each is in the package that fills it."""

import os
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import cache_from_source
from typing import TYPE_CHECKING

from recordmill.schemas.dataset.totals import most_frequent
from recordmill.schemas.formatting import format_count, format_size, show_names

if TYPE_CHECKING:
    from jinja2 import Template


@cache
def load_template(package: str, file: str, /, **filters: Callable[..., str]) -> "Template":
    """Loads a template, with filters for counts and names, and the given ones.

    HTML is escaped. In other documents, the line break after a block tag is dropped.

    Args:
        package: the package that the file is in.
        file: its name; if it ends in `.html.jinja`, the document is HTML.
        filters: by name.
    """
    # Imported here: it takes 0.07 s, and most processes write no document.
    import jinja2

    is_html = file.endswith(".html.jinja")
    compiled = os.path.dirname(cache_from_source(__file__))  # where Python keeps this module
    keeps_compiled = os.access(compiled, os.W_OK) and not sys.dont_write_bytecode
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package, ""),
        autoescape=is_html,
        trim_blocks=not is_html,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        # Compiling takes 0.1 s, a twentieth of a small run.
        bytecode_cache=jinja2.FileSystemBytecodeCache(compiled) if keeps_compiled else None,
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
