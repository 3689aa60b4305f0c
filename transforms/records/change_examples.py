"""For the report: the first image with each change in a split's first shard, before and after.

The pictures are made next to the shard, where the source is available, and stay in staging until the report is made;
readers never see them.
"""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import orjson

from recordmill import storage
from recordmill.imaging.before_and_after import draw_before_and_after
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.records.image_record import reencode_image


@dataclass(frozen=True, slots=True)
class ChangeExample:
    """One image that was changed.

    Attributes:
        change: the change that it is an example of; `changes` are all.
        key: its key.
        changes: as in its row of the sidecar.
        size: width and height that are stored.
        before_bytes: of the file.
        after_bytes: of what is stored.
        before: a small JPEG in base64.
        after: another one.
    """

    change: str
    key: str
    changes: tuple[str, ...]
    size: tuple[int, int]
    before_bytes: int
    after_bytes: int
    before: str
    after: str


def keep_examples(path: str, refs: Iterable[ImageRef], chosen: Mapping[str, str], settings: DatasetSettings) -> None:
    """Makes the examples and writes those that there are, as JSON; an image that cannot be shown is left out.

    Args:
        path: of the file.
        refs: of the shard.
        chosen: the key of an image by the change that it is an example of.
        settings: what the dataset is.

    Raises:
        OSError: the file cannot be written.
    """
    wanted = set(chosen.values())
    made = {ref.key: _make_example(ref, settings) for ref in refs if ref.key in wanted} if wanted else {}
    pairs = [(change, made[key]) for change, key in sorted(chosen.items())]
    if examples := [{**asdict(example), "change": change} for change, example in pairs if example]:
        storage.write_file(path, orjson.dumps(examples))


def read_examples(paths: Iterable[str]) -> list[ChangeExample]:
    """The examples of several files, one a change: the first file's.

    Raises:
        OSError: a file is there and cannot be read.
    """
    found: dict[str, ChangeExample] = {}
    for path in paths:
        for fields in orjson.loads(storage.read_range(path)) if storage.exists(path) else ():
            found.setdefault(fields["change"], ChangeExample(**fields))
    return list(found.values())


def _make_example(ref: ImageRef, settings: DatasetSettings) -> ChangeExample | None:
    """An example of whatever was changed in one image; None where it cannot be shown."""
    try:
        content = settings.source.read(ref, settings.images.max_bytes)
        if not isinstance(content.image, bytes):
            return None
        stored = reencode_image(content.image, settings.images)
        pictures = draw_before_and_after(content.image, stored)
    except (Rejected, OSError):  # it may have gone meanwhile
        return None
    if pictures is None:
        return None
    before, after = (base64.b64encode(picture).decode() for picture in pictures)
    size = (stored.width, stored.height)
    return ChangeExample("", ref.key, stored.changes, size, len(content.image), len(stored.encoded), before, after)
