"""Whether TensorFlow Datasets can name a dataset's files, and by which template.

TFDS finds a split's files by a template of literal text, `{SPLIT}`, `{SHARD_INDEX}`, `{NUM_SHARDS}` and
`{SHARD_X_OF_Y}`; shards count from 0, with five digits at least (tensorflow_datasets/core/naming.py).
"""

import re
from string import Formatter

from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout

_FIVE_DIGITS = "05d"


class NoTemplateError(ValueError):
    """TFDS cannot read such a dataset; the message says why, as the rest of a sentence that begins with `because`."""


def file_template(settings: DatasetSettings) -> str:
    """The template by which TFDS finds the files of any split.

    Raises:
        NoTemplateError: there is none, or TFDS could not read the files that it finds.
    """
    if settings.compression != "none":
        raise NoTemplateError(f"its files are compressed ({settings.compression})")
    layout = ExampleLayout(settings)
    for split in settings.splits.names:
        if not re.fullmatch(r"[\w-]+", split) or split == "all":  # core/splits.py: _SUB_SPEC_RE
            raise NoTemplateError(f"TFDS cannot ask for a split called `{split}`")
        if not settings.shards.name and split in layout.convention.split_words:
            raise NoTemplateError(f"its files say `{layout.convention.split_words[split]}` for the split `{split}`")
    parts = [_part(*part, settings) for part in Formatter().parse(layout.shard_name)]
    return "".join(parts).replace("{SHARD_INDEX}-of-{NUM_SHARDS}", "{SHARD_X_OF_Y}")


def _part(literal: str, field: str | None, form: str | None, conversion: str | None, settings: DatasetSettings) -> str:
    """One literal and the field after it, as TFDS writes them."""
    text = _literal(literal)
    if field is None:
        return text
    if field == "split" and not form and not conversion:
        return text + "{SPLIT}"
    if field == "name" and not form and not conversion:
        return text + _literal(settings.name)
    if field in ("index", "count") and form == _FIVE_DIGITS and not conversion:
        return text + ("{SHARD_INDEX}" if field == "index" else "{NUM_SHARDS}")
    if field == "number":
        raise NoTemplateError("its shards are counted from 1, and TFDS counts from 0")
    if field == "records":
        raise NoTemplateError("its files' names say how many records are in them")
    raise NoTemplateError(f"TFDS writes five digits, and its shards are named by `{{{field}:{form}}}`")


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
