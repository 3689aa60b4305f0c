"""Trains a small segmentation network on semantic masks, and prints its intersection over union.

python examples/train_segmentation.py dataset

The dataset has the splits train and test, and the convention deeplab.
"""

import argparse

import tensorflow as tf

import recordmill

SIZE = (64, 64)
IGNORED = 255


def read(dataset: str, split: str, shuffle: bool = False) -> tf.data.Dataset:
    """Reads batches of images, ids of pixels, and weights: ids that are ignored weigh nothing."""

    def choose(values: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        ids = values["segmentation"]
        is_known = tf.not_equal(ids, IGNORED)
        known = tf.where(is_known, ids, tf.zeros_like(ids))
        return values["image/encoded"], known, tf.cast(is_known, tf.float32)

    elements = recordmill.load(
        dataset, split, batch_size=16, image_size=SIZE, shuffle=shuffle, seed=1
    )
    return elements.map(choose)


def make_model(classes: int) -> tf.keras.Model:
    """Makes a network that looks at pixels at three scales."""
    layers = tf.keras.layers
    image = layers.Input((*SIZE, 3))
    fine = layers.Rescaling(1 / 127.5, -1)(image)
    scales = []
    for filters in (16, 24, 32):
        fine = layers.Conv2D(filters, 3, padding="same", activation="relu")(fine)
        scales.append(fine)
        fine = layers.MaxPooling2D()(fine)
    coarse = scales.pop()
    while scales:
        finer = scales.pop()
        coarse = layers.Concatenate()([layers.UpSampling2D()(coarse), finer])
        coarse = layers.Conv2D(finer.shape[-1], 3, padding="same", activation="relu")(coarse)
    return tf.keras.Model(image, layers.Conv2D(classes, 1)(coarse))


def main() -> None:
    """Trains and tests the network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--classes", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=12)
    flags = parser.parse_args()
    tf.keras.utils.set_random_seed(1)
    model = make_model(flags.classes)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.003), loss)
    model.fit(read(flags.dataset, "train", shuffle=True), epochs=flags.epochs, verbose=0)
    found = tf.keras.metrics.MeanIoU(flags.classes, sparse_y_pred=False)
    for images, ids, weights in read(flags.dataset, "test"):
        found.update_state(ids, model(images), weights)
    print(f"intersection over union: {float(found.result()):.3f}")


if __name__ == "__main__":
    main()
