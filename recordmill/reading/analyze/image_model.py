"""The SavedModel that turns a dataset's encoded images and label texts into float images and label ids."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recordmill.reading.analyze.pixel_statistics import Statistics


def save_image_model(
    folder: Path, statistics: Statistics, size: tuple[int, int], labels: Mapping[str, int], catch_all: str | None
) -> None:
    """Writes the SavedModel.

    Its signature `serving_default`, and the function `transform_fn` that TensorFlow Transform's readers call, map

    - `encoded`: string of shape (batch,), JPEG or PNG;
    - `label_text`: string of shape (batch,), UTF-8;

    to

    - `image`: float32 of shape (batch, height, width, 3): decoded, resized, standardised (mean 0, variance 1);
    - `label`: int64 of shape (batch,), the id in the dataset's label map; -1 if there is none.

    Args:
        folder: the folder to create.
        statistics: mean and variance to normalise by. A channel without variance is not divided.
        size: height and width of `image`.
        labels: ids by class name.
        catch_all: the class of all other texts except the empty one; None if there is none.
    """
    import tensorflow as tf

    mean = tf.constant(statistics.mean, tf.float32)
    deviation = tf.constant([math.sqrt(variance) or 1.0 for variance in statistics.variance], tf.float32)
    unknown = -1 if catch_all is None else labels[catch_all]
    known = {**labels, "": -1}  # an empty text is not an unknown label; and a table must not be empty
    texts, ids = tf.constant(list(known), tf.string), tf.constant(list(known.values()), tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(texts, ids), unknown)

    def transform_image(encoded: Any) -> Any:
        # The default method differs by up to 25 of 255 from libjpeg's, with which the moments were computed.
        pixels = tf.io.decode_jpeg(encoded, channels=3, dct_method="INTEGER_ACCURATE")
        # Resizing is a weighted mean with weights that sum to one, so it commutes with normalising.
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
