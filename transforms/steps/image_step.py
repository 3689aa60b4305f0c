"""What the steps have in common: rejected images on an output of their own, counters, and times."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.pvalue import TaggedOutput

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.records.image_functions import FunctionError
from recordmill.transforms.steps.elements import RejectedImage, RejectedReference

NAMESPACE = "recordmill"
"""The namespace of all metrics."""

REJECTED = "rejected"
"""The output of rejected images."""


class ImageWork(beam.DoFn):
    """Works on images one by one.

    Attributes:
        shown: the settings, as runners show them.
    """

    def __init__(self, done: str, timed: str, shown: Mapping[str, str]) -> None:
        """Makes the metrics.

        Args:
            done: the counter of images that are not rejected.
            timed: the distribution of the time for each image.
            shown: the settings, as runners show them.
        """
        self.shown = shown
        self._done = Metrics.counter(NAMESPACE, done)
        self._timed = Metrics.distribution(NAMESPACE, timed)

    def display_data(self) -> dict[str, str]:
        """Returns the settings."""
        return dict(self.shown)

    def attempt(
        self, key: str, work: Callable[[], Any], reference: ImageRef | None = None, split: str = ""
    ) -> Iterator[Any]:
        """Yields the result of the work on one image, or the rejected image on `REJECTED`.

        Args:
            key: the image's key.
            work: does the work.
            reference: the image's reference in the main job, whose ledger counts it; None in other
                pipelines, which fail if a function does.
            split: its split in the main job.
        """
        began = time.perf_counter_ns()
        try:
            result = work()
        except Rejected as rejected:
            Metrics.counter(NAMESPACE, f"rejected_{rejected.reason}").inc()
            found = RejectedImage(key, rejected.reason, rejected.detail)
            if reference is not None:
                found = RejectedReference(
                    key, rejected.reason, rejected.detail, reference, split, rejected
                )
            yield TaggedOutput(REJECTED, found)
        except FunctionError as error:
            if reference is None:
                raise
            failed = RejectedReference(key, "", str(error), reference, split, error)
            yield TaggedOutput(REJECTED, failed)
        else:
            self._done.inc()
            self._timed.update((time.perf_counter_ns() - began) // 1_000)
            yield result


class ImageStep(beam.PTransform):
    """A step whose result has a PCollection of rejected images as its attribute `rejected`."""

    shown: Mapping[str, str]
    """The settings, as runners show them."""

    def display_data(self) -> dict[str, str]:
        """Returns the settings."""
        return dict(self.shown)

    def divide(
        self, elements: beam.PCollection[Any], verb: str, work: ImageWork, gives: type, *sides: Any
    ) -> beam.PCollection[Any]:
        """Applies the work; `verb` is its name in the runner's graph."""
        done = beam.ParDo(work, *sides).with_output_types(gives, **{REJECTED: RejectedImage})
        done.label = "EachImage"
        outputs = elements | verb >> done.with_outputs(REJECTED, main="images")
        images = outputs["images"]
        images.rejected = outputs[REJECTED]
        return images
