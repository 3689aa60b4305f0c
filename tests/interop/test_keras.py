"""Keras trains on a dataset as TensorFlow Datasets gives it, and learns what is in it."""

import pytest

REASON = "needs an environment of its own: make test-interop"
tfds = pytest.importorskip("tensorflow_datasets", reason=REASON)
keras = pytest.importorskip("keras", reason=REASON)
tf = pytest.importorskip("tensorflow", reason=REASON)


def test_fit(convert):
    folder = convert("sample").folder
    builder = tfds.builder_from_directory(str(folder))
    classes = builder.info.features["image/class/label"].num_classes

    def prepare(image, label):
        return tf.image.resize(tf.cast(image, tf.float32), (16, 16)) / 255, label

    train = (
        builder.as_dataset(split="train", as_supervised=True)
        .map(prepare)
        .cache()
        .shuffle(1000, seed=1)
        .batch(32)
    )
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((16, 16, 3)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(classes),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    history = model.fit(train, epochs=12, verbose=0).history
    assert history["loss"][-1] < history["loss"][0] / 2
    assert history["accuracy"][-1] > 2 / classes
