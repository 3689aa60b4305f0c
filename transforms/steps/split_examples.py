"""SplitExamples: a hash of the key, or of the group, decides the split of an Example."""

import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.pvalue import TaggedOutput
from pydantic import TypeAdapter

from recordmill.schemas.digests import hash_key
from recordmill.schemas.settings.dataset import SplitSettings
from recordmill.transforms.planning.splitting import split_bounds
from recordmill.transforms.steps.elements import BuiltExample
from recordmill.transforms.steps.image_step import NAMESPACE


class SplitExamples(beam.PTransform):
    """Divides a PCollection of `BuiltExample` into one PCollection of records per split.

    They are in the order of the fractions: `train, test = built | SplitExamples(...)`. For the same
    keys, seed and fractions, the splits are those of the main job, except that this step fills no
    empty split.

    Example:
        train, test = built | recordmill.SplitExamples({"train": 0.9, "test": 0.1}, seed=0)
    """

    def __init__(self, fractions: Mapping[str, float], seed: int = 0) -> None:
        """Sets the splits.

        Args:
            fractions: the share of each split; Examples in the remainder to 1 are left out.
            seed: other seeds give other splits.

        Raises:
            ValueError: the fractions are impossible.
        """
        super().__init__()
        settings = SplitSettings(fractions=dict(fractions))
        TypeAdapter(SplitSettings).validate_python(asdict(settings))
        self._names = settings.names
        self._work = _SplitExample(settings, seed)

    def display_data(self) -> dict[str, str]:
        """Returns the settings."""
        return self._work.display_data()

    def expand(self, examples: beam.PCollection[BuiltExample]) -> Any:
        """Adds the step to a pipeline."""
        kinds = dict.fromkeys(self._names, bytes)
        work = beam.ParDo(self._work).with_output_types(bytes, **kinds)
        work.label = "EachExample"
        outputs = examples | "Split" >> work.with_outputs(*self._names)
        for name in self._names:
            outputs[name]  # Beam makes an output when it is first asked for
        return outputs


class _SplitExample(beam.DoFn):
    def __init__(self, settings: SplitSettings, seed: int) -> None:
        self._names, self._bounds, self._seed = settings.names, split_bounds(settings), seed
        self._fractions = dict(settings.fractions)
        self._timed = Metrics.distribution(NAMESPACE, "split_microseconds")

    def display_data(self) -> dict[str, str]:
        return {"fractions": str(self._fractions), "seed": str(self._seed)}

    def process(self, example: BuiltExample) -> Iterator[Any]:
        began = time.perf_counter_ns()
        split = example.split or self._find_split(example)
        if split is None:
            Metrics.counter(NAMESPACE, "left_out_fraction").inc()
            return
        if split not in self._names:
            raise ValueError(
                f"the split of {example.key} is {split!r}, which is not one of "
                f"{', '.join(self._names)}: add it to the fractions"
            )
        Metrics.counter(NAMESPACE, f"examples_{split}").inc()
        self._timed.update((time.perf_counter_ns() - began) // 1_000)
        yield TaggedOutput(split, example.record)

    def _find_split(self, example: BuiltExample) -> str | None:
        hashes = hash_key(self._seed, example.key, example.group)
        place = bisect_right(self._bounds, hashes.split)
        if place == len(self._names):
            return None
        return self._names[place]
