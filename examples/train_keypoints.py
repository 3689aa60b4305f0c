"""Trains a small network to find key points, and prints how many it finds.

python examples/train_keypoints.py dataset

The dataset has the splits train and test, the convention tf_object_detection, and an object with
key points in each image.
"""

import argparse

import tensorflow as tf

import recordmill

SIZE = (64, 64)
NEAR = 0.1
"""A point is found if it is this near, as a fraction of the image's width."""


def read(dataset: str, split: str, shuffle: bool = False) -> tf.data.Dataset:
    """Reads batches of images, and x, y and visibility of each point of their first object."""

    def choose(values: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        return values["image/encoded"], values["keypoints"][0]

    elements = recordmill.load(dataset, split, image_size=SIZE, shuffle=shuffle, seed=1)
    return elements.map(choose).batch(16)


@tf.keras.utils.register_keras_serializable()
class FindCenters(tf.keras.layers.Layer):
    """Turns one map for each point into the mean place of the map's weight, x and y from 0 to 1."""

    def call(self, maps: tf.Tensor) -> tf.Tensor:
        """Returns places of shape (images, points, 2)."""
        height, width, points = maps.shape[1:]
        weights = tf.nn.softmax(tf.reshape(maps, (-1, height * width, points)), axis=1)
        rows, columns = ((tf.range(side, dtype=tf.float32) + 0.5) / side for side in SIZE)
        places = tf.reshape(tf.stack(tf.meshgrid(columns, rows), axis=-1), (-1, 2))
        return tf.einsum("npk,pc->nkc", weights, places)


def make_model(points: int) -> tf.keras.Model:
    """Makes a network with a map of the whole image for each point."""
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Input((*SIZE, 3)),
            layers.Rescaling(1 / 127.5, -1),
            layers.Conv2D(16, 5, padding="same", activation="relu"),
            layers.Conv2D(16, 5, padding="same", activation="relu"),
            layers.Conv2D(points, 5, padding="same"),
            FindCenters(),
        ]
    )


def measure_distance(points: tf.Tensor, found: tf.Tensor) -> tf.Tensor:
    """Returns the mean squared distance of the labeled points to where they were found."""
    is_labeled = tf.cast(points[..., 2] > 0, tf.float32)
    squares = tf.reduce_sum(tf.square(points[..., :2] - found), axis=-1)
    return tf.reduce_sum(squares * is_labeled) / tf.maximum(tf.reduce_sum(is_labeled), 1)


def main() -> None:
    """Trains and tests the network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--epochs", type=int, default=20)
    flags = parser.parse_args()
    tf.keras.utils.set_random_seed(1)
    train = read(flags.dataset, "train", shuffle=True)
    ((_, points),) = train.take(1)
    model = make_model(points.shape[1])
    model.compile(tf.keras.optimizers.Adam(0.005), measure_distance)
    model.fit(train, epochs=flags.epochs, verbose=0)
    labeled = near = 0
    for images, points in read(flags.dataset, "test"):
        is_labeled = points[..., 2] > 0
        distances = tf.norm(points[..., :2] - model(images), axis=-1)
        labeled += int(tf.reduce_sum(tf.cast(is_labeled, tf.int32)))
        near += int(tf.reduce_sum(tf.cast(is_labeled & (distances <= NEAR), tf.int32)))
    print(f"found: {near / labeled:.3f} of {labeled} key points")


if __name__ == "__main__":
    main()
