import gzip
import io
import json
import random
import struct
from pathlib import Path

import pytest
from PIL import Image

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.reading.dataset import open_dataset
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.schemas.features import Example

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture
def picture():
    """Draws a JPEG of its own for each seed: `picture(seed, (width, height), EXIF orientation)`."""

    def draw(seed, size=(20, 10), orientation=1):
        image = Image.frombytes("RGB", (6, 4), random.Random(f"{seed}").randbytes(72)).resize(size)
        exif = Image.Exif()
        exif[0x0112] = orientation
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=90, **({"exif": exif} if orientation != 1 else {}))
        return stream.getvalue()

    return draw


@pytest.fixture
def convert(tmp_path, capsys):
    """Runs a shipped configuration on a folder or file; gives the marker and every Example as a
    dict, by split.

    The run must end well. Most configurations split by fractions, train and test: at least two
    images must remain, or give it `"--set=splits.fractions={train: 1.0}"`.
    """

    def run(config, source, *more):
        output = tmp_path / f"dataset-of-{config}"
        arguments = [
            f"--config={CONFIGS / config}",
            f"--input={source}",
            f"--output={output}",
            *more,
        ]
        assert launch(arguments, build) == 0, capsys.readouterr().err
        assert [
            str(each)
            for each in verify_dataset(open_dataset(str(output)), "files").findings
            if not each.is_note
        ] == []
        marker = json.loads((output / "recordmill.json").read_text(encoding="utf-8"))
        return marker, {
            split: [
                values
                for shard in said["shards"]
                for values in _read_examples((output / shard["name"]).read_bytes())
            ]
            for split, said in marker["splits"].items()
        }

    return run


@pytest.fixture
def read_examples():
    """Gives each Example of a TFRecord file's bytes as a dict of lists."""
    return _read_examples


def _read_examples(content):
    """Each Example of a TFRecord file, gzipped or not, as a dict of lists."""
    content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    offset = 0
    while offset < len(content):
        (length,) = struct.unpack_from("<Q", content, offset)
        features = Example.FromString(content[offset + 12 : offset + 12 + length]).features.feature
        yield {
            key: list(getattr(value, value.WhichOneof("kind")).value)
            for key, value in features.items()
        }
        offset += length + 16
