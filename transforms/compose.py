"""Four steps for pipelines of your own: read images, prepare them, build Examples, split those.

They leave out what cannot become an Example and count it. The main job does the same work in the step that writes
shards, so that pixels are never shuffled.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations

import recordmill.schemas.reference_batch  # noqa: F401  # registers the coder of references with Beam
from recordmill.imaging import ImageSettings, PreparedImage
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.features import encode_example
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.keep import KeepSettings
from recordmill.schemas.settings.splits import SplitSettings
from recordmill.storage.read_image import read_image
from recordmill.transforms.planning.key_hashes import hash_key
from recordmill.transforms.planning.splitting import split_bounds, split_by_hash
from recordmill.transforms.records.image_hooks import make_hooks
from recordmill.transforms.records.image_record import find_class, image_record, reencode_image

Result = TypeVar("Result")


def _accepted(counter: str, function: Callable[..., Result], *args: Any) -> Iterator[Result]:
    """What a function gives; nothing if it rejects, which is counted."""
    try:
        yield function(*args)
    except Rejected:
        beam.metrics.Metrics.counter("recordmill", counter).inc()


@dataclass
class ReadImages(beam.PTransform):
    """Reads each image of a PCollection of references; those that cannot be read are left out.

    Attributes:
        max_bytes: longer images are left out.
    """

    max_bytes: int = 256 * 2**20

    def expand(self, refs: beam.PCollection[ImageRef]) -> beam.PCollection[tuple[ImageRef, bytes]]:
        """PCollection[ImageRef] -> PCollection[tuple[ImageRef, bytes]]."""
        return refs | beam.FlatMap(self._read).with_output_types(tuple[ImageRef, bytes])

    def _read(self, ref: ImageRef) -> Iterator[tuple[ImageRef, bytes]]:
        return ((ref, data) for data in _accepted("unread", read_image, ref, self.max_bytes))


@dataclass
class ReencodeImages(beam.PTransform):
    """Checks each image of a PCollection of references and bytes, and re-encodes it if needed; leaves out bad images.

    Attributes:
        settings: how images are checked, decoded and re-encoded.
    """

    settings: ImageSettings = field(default_factory=ImageSettings)

    def expand(
        self, images: beam.PCollection[tuple[ImageRef, bytes]]
    ) -> beam.PCollection[tuple[ImageRef, PreparedImage]]:
        """PCollection[tuple[ImageRef, bytes]] -> PCollection[tuple[ImageRef, PreparedImage]]."""
        return images | beam.FlatMapTuple(self._prepare).with_output_types(tuple[ImageRef, PreparedImage])

    def _prepare(self, ref: ImageRef, data: bytes) -> Iterator[tuple[ImageRef, PreparedImage]]:
        hooks = make_hooks(ref, self.settings, KeepSettings())
        prepare = partial(reencode_image, data, self.settings, hooks=hooks)
        return ((ref, image) for image in _accepted("undecoded", prepare))


@dataclass
class BuildExamples(beam.PTransform):
    """Serializes each prepared image of a PCollection; images whose label has no id are left out.

    An image without a label has no label features.

    Attributes:
        label_ids: class ids by name.
        convention: which features an Example has.
    """

    label_ids: dict[str, int]
    convention: str = "default"

    def __post_init__(self) -> None:
        """Raises ValueError where there is no such convention."""
        load_convention(self.convention)

    def expand(self, images: beam.PCollection[tuple[ImageRef, PreparedImage]]) -> beam.PCollection[tuple[str, bytes]]:
        """PCollection[tuple[ImageRef, PreparedImage]] -> PCollection[tuple[key, serialised Example]]."""
        build = partial(self._build, LabelMap(dict(self.label_ids)))
        return images | beam.FlatMapTuple(build).with_output_types(tuple[str, bytes])

    def _build(self, labels: LabelMap, ref: ImageRef, image: PreparedImage) -> Iterator[tuple[str, bytes]]:
        convention = load_convention(self.convention)
        for name, label_id in _accepted("unlabelled", find_class, ref.label, labels):
            yield ref.key, encode_example(convention.features, image_record(ref, image, name, label_id, convention))


@dataclass
class SplitExamples(beam.PTransform):
    """Splits Examples by a hash of their keys, as the main job does; an Example never moves when others are added.

    Attributes:
        fractions: share of the Examples by split name; what is left to 1 is left out.
        seed: other seeds give other splits.
    """

    fractions: dict[str, float] = field(default_factory=lambda: {"train": 0.9, "test": 0.1})
    seed: int = 0

    @no_annotations  # type: ignore[untyped-decorator]  # Beam knows no type hints of several PCollections, and warns of each
    def expand(self, examples: beam.PCollection[tuple[str, bytes]]) -> dict[str, beam.PCollection[bytes]]:
        """PCollection[tuple[key, Example]] -> {split: PCollection[Example]}."""
        settings = SplitSettings(fractions=self.fractions)
        names, bounds = settings.names, split_bounds(settings)

        def choose(element: tuple[str, bytes], _: int) -> int:
            return split_by_hash(hash_key(self.seed, element[0]).split, bounds)

        # One part more than splits: what the fractions leave out.
        parts = examples | beam.Partition(choose, len(names) + 1)  # type: ignore[arg-type]  # Beam takes functions too
        return {
            name: part | f"{name.capitalize()}Examples" >> beam.Values()
            for name, part in zip(names, parts, strict=False)
        }
