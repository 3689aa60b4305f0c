"""Examples for the report: the first image with each change in a split's first shard, before and after.

The pictures are made with the shard, when the source is available, and published in `report.json`.
"""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import replace

import orjson

from recordmill import storage
from recordmill.imaging.before_and_after import draw_before_and_after
from recordmill.schemas.dataset.json_values import from_json, to_json
from recordmill.schemas.dataset.side_files import ChangeExample
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.records.convert_image import reencode_image
from recordmill.transforms.records.image_functions import make_hooks


def write_examples(path: str, refs: Iterable[ImageRef], chosen: Mapping[str, str], settings: DatasetSettings) -> None:
    """Makes the examples and writes them as JSON; an image that cannot be shown is left out.

    Args:
        path: the file; without examples, it is deleted.
        refs: the shard's references.
        chosen: the key of the example for each change.
        settings: what the dataset is.

    Raises:
        OSError: the file cannot be written.
    """
    wanted = set(chosen.values())
    made = {ref.key: _make_example(ref, settings) for ref in refs if ref.key in wanted} if wanted else {}
    pairs = [(change, made[key]) for change, key in sorted(chosen.items())]
    if examples := [to_json(replace(example, change=change)) for change, example in pairs if example]:
        storage.write_file(path, orjson.dumps(examples))
    else:  # a failed run may have left some
        storage.remove_files([path])


def read_examples(paths: Iterable[str]) -> tuple[ChangeExample, ...]:
    """Reads the examples of several files: for each change, the first one.

    Raises:
        OSError: a file exists but cannot be read.
    """
    found: dict[str, ChangeExample] = {}
    for path in paths:
        for fields in orjson.loads(storage.read_range(path)) if storage.exists(path) else ():
            found.setdefault(fields["change"], from_json(ChangeExample, fields))
    return tuple(found.values())


def _make_example(ref: ImageRef, settings: DatasetSettings) -> ChangeExample | None:
    """Makes an example of the changes to one image; None if it cannot be shown."""
    try:
        content = settings.source.read(ref, settings.images.max_bytes)
        if not isinstance(content.image, bytes):
            return None
        hooks = make_hooks(ref, settings.images, settings.keep)
        stored = reencode_image(content.image, settings.images, hooks=hooks)
        pictures = draw_before_and_after(content.image, stored)
    except (Rejected, OSError):  # the source may have been deleted meanwhile
        return None
    if pictures is None:
        return None
    before, after = (base64.b64encode(picture).decode() for picture in pictures)
    return ChangeExample("", ref.key, stored.changes, len(content.image), len(stored.encoded), before, after)
