"""TFDS: a `GeneratorBasedBuilder` over class folders. Its own `ImageFolder` writes no records."""

import io
import os
import time
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read on import

import tensorflow_datasets as tfds

from benchmarks.rivals import job


class Photographs(tfds.core.GeneratorBasedBuilder):
    """The photographs of the input, in one split."""

    VERSION = tfds.core.Version("1.0.0")

    def __init__(self, items: list[job.Item], mode: str, **named: Any) -> None:
        self.items, self.mode = items, mode
        super().__init__(**named)

    def _info(self) -> tfds.core.DatasetInfo:
        features = {
            "image": tfds.features.Image(shape=(None, None, 3), encoding_format="jpeg"),
            "label": tfds.features.ClassLabel(names=sorted({item.text for item in self.items})),
            "filename": tfds.features.Text(),
        }
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, _: Any) -> dict[str, Any]:
        return {"train": self._generate_examples()}

    def _generate_examples(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for item in self.items:
            encoded = job.features(item, self.mode)["image/encoded"]
            assert isinstance(encoded, bytes)
            yield (
                item.name,
                {"image": io.BytesIO(encoded), "label": item.text, "filename": item.name},
            )


def main() -> None:
    """Converts the input folder."""
    arguments = job.arguments(__doc__)
    started, items = time.perf_counter(), job.items(arguments.input)
    builder = Photographs(items, arguments.mode, data_dir=arguments.output)
    builder.download_and_prepare()
    job.report(len(items), builder.info.dataset_size, time.perf_counter() - started)


if __name__ == "__main__":
    main()
