"""Analyses a split's images with TensorFlow Transform: mean and variance of the pixels, quantiles of the sides."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recordmill.reading.analyze.channel_moments import COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

RANK_ERROR = 0.001
"""The `epsilon` of `tft.quantiles`: a boundary's rank is off by at most this share of the images."""

BUCKETS = 100
_ROWS_A_BATCH = 10_000
_LOW = 2**31  # squares are summed in two halves of 31 bits: 1.6 million images of 90 megapixels would overflow


@dataclass(frozen=True, slots=True)
class Sides:
    """Heights or widths, in pixels.

    Attributes:
        least: the exact minimum.
        most: the exact maximum.
        quantiles: 99 of them, the first to the 99th hundredth, each within `RANK_ERROR` of its rank.
    """

    least: int
    most: int
    quantiles: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a split's images.

    Attributes:
        images: number of images.
        pixels: total number of pixels.
        mean: of red, green and blue, 0 to 255, over all pixels of all images, so large images count for more.
        variance: of the same pixels, as a population (divided by `pixels`).
        height: the images' heights.
        width: the images' widths.
    """

    images: int
    pixels: int
    mean: tuple[float, ...]
    variance: tuple[float, ...]
    height: Sides
    width: Sides

    @property
    def common_size(self) -> tuple[int, int] | None:
        """Height and width, if all images have the same."""
        same = self.height.least == self.height.most and self.width.least == self.width.most
        return (self.height.least, self.width.least) if same else None


def compute_statistics(numbers: NDArray[np.int64]) -> Statistics:
    """Analyses the numbers of at least one image with TensorFlow Transform, in this process.

    Sums of integers are exact, so mean and variance are correctly rounded.

    Args:
        numbers: int64 of shape (images, 8), as returned by `read_moments`.
    """
    return describe_findings(len(numbers), _run_analysis(numbers))


def describe_findings(images: int, found: Mapping[str, NDArray[Any]]) -> Statistics:
    """Computes statistics from TensorFlow Transform's results.

    Args:
        images: number of images.
        found: `totals`, int64 of shape (10,): pixels, sums, and the squares' high and low halves by colour; `least`
            and `most`, int64 of shape (2,): of heights and widths; `quantiles`, of shape (2, 99).
    """
    totals = [int(total) for total in found["totals"]]
    pixels, sums, high, low = totals[0], totals[1:4], totals[4:7], totals[7:10]
    squares = [above * _LOW + below for above, below in zip(high, low, strict=True)]
    height, width = (
        Sides(int(least), int(most), tuple(quantiles.tolist()))
        for least, most, quantiles in zip(found["least"], found["most"], found["quantiles"], strict=True)
    )
    return Statistics(
        images=images,
        pixels=pixels,
        mean=tuple(total / pixels for total in sums),
        # Integers up to the final division, so nothing cancels.
        variance=tuple((pixels * square - total**2) / pixels**2 for total, square in zip(sums, squares, strict=True)),
        height=height,
        width=width,
    )


def _preprocess(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The preprocessing function: tensors of shape (batch, 8) to totals over all batches."""
    import tensorflow as tf
    import tensorflow_transform as tft

    sides, sums, squares = tf.split(inputs["row"], [2, 3, 3], axis=1)
    pixels = tf.reduce_prod(sides, axis=1, keepdims=True)
    parts = tf.concat([pixels, sums, squares // _LOW, squares % _LOW], axis=1)
    found = {
        "totals": tft.sum(parts, reduce_instance_dims=False),
        "least": tft.min(sides, reduce_instance_dims=False),
        "most": tft.max(sides, reduce_instance_dims=False),
        "quantiles": tft.quantiles(sides, BUCKETS, RANK_ERROR, reduce_instance_dims=False),
    }
    # Results of analysers have no name in the graph, and no batch; outputs need both.
    return {name: tf.expand_dims(tf.identity(value), 0) for name, value in found.items()}


def _run_analysis(numbers: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    import apache_beam as beam
    import tensorflow as tf
    import tensorflow_transform as tft
    import tensorflow_transform.beam as tft_beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    from tensorflow_metadata.proto.v0.schema_pb2 import FixedShape, TensorRepresentation
    from tensorflow_transform.beam.tft_beam_io.transform_fn_io import WriteTransformFn
    from tfx_bsl.public.tfxio import TensorAdapterConfig

    batches = list(_batches(numbers))
    shape = FixedShape(dim=[FixedShape.Dim(size=len(COLUMNS))])
    dense = TensorRepresentation.DenseTensor(column_name="row", shape=shape)
    adapter = TensorAdapterConfig(batches[0].schema, {"row": TensorRepresentation(dense_tensor=dense)})
    with tempfile.TemporaryDirectory(prefix="recordmill-") as folder:
        with (
            tft_beam.Context(temp_dir=f"{folder}/temporary"),
            beam.Pipeline(runner=FnApiRunner(), options=PipelineOptions([])) as pipeline,  # not this process's flags
        ):
            rows = pipeline | beam.Create(batches, reshuffle=False)
            analysed = (rows, adapter) | tft_beam.AnalyzeDataset(_preprocess)
            _ = analysed | WriteTransformFn(folder)
        outputs = tft.TFTransformOutput(folder).transform_raw_features({"row": tf.zeros([1, len(COLUMNS)], tf.int64)})
        return {name: output.numpy()[0] for name, output in outputs.items()}


def _batches(numbers: NDArray[np.int64]) -> Iterator["pa.RecordBatch"]:
    """Record batches of one column, `row`: lists of eight numbers."""
    import pyarrow as pa

    for start in range(0, len(numbers), _ROWS_A_BATCH):
        part = numbers[start : start + _ROWS_A_BATCH]
        offsets = np.arange(0, part.size + 1, len(COLUMNS), dtype=np.int32)
        yield pa.record_batch({"row": pa.ListArray.from_arrays(pa.array(offsets), pa.array(part.ravel()))})
