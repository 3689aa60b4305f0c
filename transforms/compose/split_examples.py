"""SplitExamples: one PCollection of Examples becomes one for each split."""

from dataclasses import dataclass, field

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations

from recordmill.schemas.settings.splits import SplitSettings
from recordmill.transforms.planning.key_hashes import hash_key
from recordmill.transforms.planning.splitting import split_bounds, split_by_hash


@dataclass
class SplitExamples(beam.PTransform):
    """Splits Examples by a hash of their keys, as the main job does; an Example never moves when others are added.

    For pipelines of your own; see `ReadImages`.

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
