"""Writes `transform_fn/` for a finished dataset.

TensorFlow Transform computes mean and variance of the pixels, and quantiles of the sides, from 64
bytes per image in the sidecars. A SavedModel with these numbers turns encoded images and class
names into float images and label ids.
"""

import hashlib
import math
import tempfile
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recordmill import storage
from recordmill.reading.dataset import Dataset, StoredShard, open_dataset
from recordmill.schemas.dataset.file_names import MARKER
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.errors import LoadError
from recordmill.storage import dataset_files

COLUMNS = ("height", "width", "sum_r", "sum_g", "sum_b", "squares_r", "squares_g", "squares_b")
"""Sides in pixels; sums and sums of squares of red, green and blue (0 to 255) over the image's
pixels."""


def read_moments(dataset: Dataset, split: str) -> NDArray[np.int64]:
    """Reads the channel statistics and sides of every image of a split, in stored order.

    Args:
        dataset: the dataset.
        split: the split's name.

    Returns:
        int64 of shape (images, 8): `COLUMNS`. The channel of a gray image is repeated for all
        three, as in `tf.io.decode_jpeg(channels=3)`.

    Raises:
        LoadError: the split has no images, or the sidecars have no moments or do not match the
            marker.
    """
    recipe, folder = dataset.require_marker().plan.for_readers, dataset.folder
    if split not in dataset.splits or not dataset.count(split):
        names = ", ".join(dataset.splits)
        raise LoadError(
            f"{folder} has no images in a split {split}: name one of {names} with --split"
        )
    is_decoded = recipe.images.check != "header" and not recipe.is_raw
    if not (recipe.images.moments and is_decoded and recipe.plan_version >= _MOMENTS_SINCE):
        raise LoadError(
            f"{folder} was converted without channel statistics: "
            "convert it again with --set analyze=true --overwrite"
        )
    numbers = array("q")
    for shard in dataset.shards_of(split):
        for row in _read_rows(shard):
            numbers.extend(_numbers_of(row, folder))
    return np.frombuffer(numbers, np.int64).reshape(-1, len(COLUMNS))


def _read_rows(shard: StoredShard) -> Iterator[SidecarRow]:
    is_there = storage.size_of(shard.sidecar) is not None
    most = dataset_files.MOST_SIDECAR_BYTES
    content = b""
    if is_there:
        content = storage.read_whole(shard.sidecar, most)
    if hashlib.sha256(content).hexdigest() != shard.sidecar_sha256:
        raise LoadError(
            f"{shard.sidecar} is missing, or not the file that {MARKER} lists: "
            "convert the images again with --overwrite"
        )
    return (
        row for row in dataset_files.parse_rows(content.splitlines()) if isinstance(row, SidecarRow)
    )


def _numbers_of(row: SidecarRow, path: str) -> Sequence[int]:
    moments, height, width = row.moments, row.height, row.width
    if moments is None or height is None or width is None:
        raise LoadError(
            f"{row.key} is stored in {path} as TensorFlow does not read it, or not alike: "
            "convert it again with images.reencode: when_needed, and --overwrite"
        )
    channels = [*moments] * 3 if len(moments) == 1 else moments
    return [
        height,
        width,
        *(channel[0] for channel in channels),
        *(channel[1] for channel in channels),
    ]


RANK_ERROR = 0.001
"""The `epsilon` of `tft.quantiles`: a boundary's rank is off by at most this share of the
images."""

BUCKETS = 100
_MOMENTS_SINCE = 2
"""The first plan version whose moments are those of the pixels that a model decodes."""

_ROWS_PER_BATCH = 10_000
# Squares are summed in halves of 31 bits: one sum over 1.6 million images of 90 megapixels would
# overflow.
_LOW = 2**31


@dataclass(frozen=True, slots=True)
class Sides:
    """Heights or widths, in pixels.

    Attributes:
        least: the exact minimum.
        most: the exact maximum.
        quantiles: the 99 percentiles from the 1st to the 99th, each within `RANK_ERROR` of its
            rank.
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
        mean: of red, green and blue, 0 to 255, over all pixels of all images, so large images count
            for more.
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
        if same:
            return self.height.least, self.width.least
        return None


def compute_statistics(images: int, found: Mapping[str, NDArray[Any]]) -> Statistics:
    """Computes a split's statistics from TensorFlow Transform's results.

    Sums of integers are exact, so mean and variance are correctly rounded.

    Args:
        images: number of images.
        found: `totals`, int64 of shape (10,): pixels, sums, and the squares' high and low halves by
            color; `least` and `most`, int64 of shape (2,): of heights and widths; `quantiles`, of
            shape (2, 99).
    """
    totals = [int(total) for total in found["totals"]]
    pixels, sums, high, low = totals[0], totals[1:4], totals[4:7], totals[7:10]
    squares = [above * _LOW + below for above, below in zip(high, low, strict=True)]
    height, width = (
        Sides(int(least), int(most), tuple(quantiles.tolist()))
        for least, most, quantiles in zip(
            found["least"], found["most"], found["quantiles"], strict=True
        )
    )
    return Statistics(
        images=images,
        pixels=pixels,
        mean=tuple(total / pixels for total in sums),
        # Integers up to the final division, so nothing cancels.
        variance=tuple(
            (pixels * square - total**2) / pixels**2
            for total, square in zip(sums, squares, strict=True)
        ),
        height=height,
        width=width,
    )


def _preprocess(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the preprocessing function.

    Tensors of shape (batch, 8) to totals over all batches.
    """
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
    # Results of analyzers have no name in the graph, and no batch; outputs need both.
    return {name: tf.expand_dims(tf.identity(value), 0) for name, value in found.items()}


def run_analysis(numbers: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Analyzes the numbers of at least one image with TensorFlow Transform, in this process.

    Args:
        numbers: int64 of shape (images, 8), as returned by `read_moments`.

    Returns:
        The input of `compute_statistics`.
    """
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
    adapter = TensorAdapterConfig(
        batches[0].schema, {"row": TensorRepresentation(dense_tensor=dense)}
    )
    with tempfile.TemporaryDirectory(prefix="recordmill-") as folder:
        with (
            tft_beam.Context(temp_dir=f"{folder}/temporary"),
            beam.Pipeline(
                runner=FnApiRunner(), options=PipelineOptions([])
            ) as pipeline,  # not this process's flags
        ):
            rows = pipeline | beam.Create(batches, reshuffle=False)
            analyzed = (rows, adapter) | tft_beam.AnalyzeDataset(_preprocess)
            _ = analyzed | WriteTransformFn(folder)
        outputs = tft.TFTransformOutput(folder).transform_raw_features(
            {"row": tf.zeros([1, len(COLUMNS)], tf.int64)}
        )
        return {name: output.numpy()[0] for name, output in outputs.items()}


def _batches(numbers: NDArray[np.int64]) -> Iterator[Any]:
    """Yields Arrow record batches of one column, `row`: lists of eight numbers."""
    import pyarrow as pa

    for start in range(0, len(numbers), _ROWS_PER_BATCH):
        yield pa.record_batch({"row": pa.array([*numbers[start : start + _ROWS_PER_BATCH]])})


def save_image_model(
    folder: Path,
    statistics: Statistics,
    size: tuple[int, int],
    labels: Mapping[str, int],
    catch_all: str | None,
) -> None:
    """Writes the SavedModel.

    Its signature `serving_default`, and the function `transform_fn` that TensorFlow Transform's
    readers call, map

    - `encoded`: string of shape (batch,), JPEG or PNG;
    - `label_text`: string of shape (batch,), UTF-8;

    to

    - `image`: float32 of shape (batch, height, width, 3): decoded, resized, standardized (mean 0,
      variance 1);
    - `label`: int64 of shape (batch,), the id in the dataset's label map; -1 if there is none.

    Args:
        folder: the folder to create.
        statistics: mean and variance to normalize by. A channel without variance is not divided.
        size: height and width of `image`.
        labels: ids by class name.
        catch_all: the class of all other strings except the empty one; None if there is none.
    """
    import tensorflow as tf

    mean = tf.constant(statistics.mean, tf.float32)
    deviation = tf.constant(
        [math.sqrt(variance) or 1.0 for variance in statistics.variance], tf.float32
    )
    unknown = -1 if catch_all is None else labels[catch_all]
    # An empty text is not an unknown label; and a table must not be empty.
    known = {**labels, "": -1}
    texts, ids = tf.constant(list(known), tf.string), tf.constant(list(known.values()), tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(texts, ids), unknown)

    def transform_image(encoded: Any) -> Any:
        # The default method differs by up to 25 of 255 from libjpeg's, with which the moments were
        # computed.
        pixels = tf.io.decode_jpeg(encoded, channels=3, dct_method="INTEGER_ACCURATE")
        # Resizing is a weighted mean with weights that sum to one, so it commutes with normalizing.
        return (tf.image.resize(pixels, size, antialias=True) - mean) / deviation

    def transform(encoded: Any, label_text: Any) -> dict[str, Any]:
        shown = tf.TensorSpec([*size, 3], tf.float32)
        images = tf.map_fn(transform_image, encoded, fn_output_signature=shown)
        return {"image": images, "label": table.lookup(label_text)}

    inputs = {name: tf.TensorSpec([None], tf.string, name) for name in ("encoded", "label_text")}
    module = tf.Module()
    module.table = table
    module.transform_fn = tf.function(lambda inputs: transform(**inputs), input_signature=[inputs])
    serving = tf.function(transform, input_signature=list(inputs.values()))
    tf.saved_model.save(module, str(folder), signatures={"serving_default": serving})


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result of an analysis.

    Attributes:
        done: whether the analysis ran; False if an earlier one still matches.
        note: the content of `analysis.json`.
        seconds: the time for `imports` (TensorFlow), and for the rest.
    """

    done: bool
    note: Mapping[str, Any]
    seconds: Mapping[str, float]


def check_tensorflow() -> None:
    """Checks for TensorFlow Transform without importing it.

    Raises:
        LoadError: it is not installed.
    """
    if not all(map(find_spec, ("tensorflow", "tensorflow_transform"))):
        raise LoadError(
            "an analysis needs TensorFlow Transform, which is not installed: pip install "
            "'.[analyze]' in a clone"
        )


def analyze_dataset(
    path: str,
    split: str | None = None,
    size: tuple[int, int] | None = None,
) -> Analysis:
    """Writes `transform_fn/` into a dataset's folder, unless an existing one matches.

    Args:
        path: the dataset's folder, on any of Beam's file systems.
        split: the split to analyze; None: that of an existing analysis if it matches, otherwise
            `train`.
        size: height and width of the model's images; None: those of an existing analysis if it
            matches, otherwise the size of all images if it is the same, otherwise `DEFAULT_SIZE`.

    Raises:
        RecordmillError: the dataset cannot be analyzed, for a reason that a user can fix.
        OSError: something cannot be read or written.
    """
    started = time.monotonic()
    dataset = open_dataset(path)
    marker, note = dataset.require_marker(), dataset_files.read_analysis(path)
    is_wanted = note and split in (None, note["split"]) and size in (None, tuple(note["size"]))
    if note and is_wanted and dataset_files.analysis_fits(note, marker):
        return Analysis(False, note, {"imports": 0.0, "analysis": time.monotonic() - started})
    split = split or "train"
    numbers = read_moments(dataset, split)
    check_tensorflow()
    read = time.monotonic()
    _import_tensorflow()
    imports = time.monotonic() - read
    statistics = compute_statistics(len(numbers), run_analysis(numbers))
    size = size or statistics.common_size or dataset_files.DEFAULT_SIZE
    note = {
        "plan": marker.plan.id,
        "contents": dataset_files.contents_digest(marker, split),
        "split": split,
        "size": size,
        **asdict(statistics),
        "rank_error": RANK_ERROR,
        "labels": marker.labels,
    }
    with tempfile.TemporaryDirectory(prefix="recordmill-") as folder:
        built = Path(folder) / "model"
        save_image_model(
            built, statistics, size, marker.labels, marker.plan.for_readers.labels.get("catch_all")
        )
        dataset_files.publish_transform_fn(built, note, path)
    return Analysis(
        True, note, {"imports": imports, "analysis": time.monotonic() - started - imports}
    )


def _import_tensorflow() -> None:
    import tfx_bsl.public.tfxio  # noqa: F401
