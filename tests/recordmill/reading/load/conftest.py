"""Small datasets to load: converted from pictures that the test draws, or put together record by record."""

import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

ANIMALS = {"cat": 13, "dog": 7, "eel": 4}


def draw(seed: object, size: tuple[int, int], mode: str = "RGB") -> bytes:
    noise = random.Random(f"{seed}").randbytes(6 * 4 * 3)
    image = Image.frombytes("RGB", (6, 4), noise).resize(size, Image.Resampling.BICUBIC).convert(mode)
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=90)
    return stream.getvalue()


@pytest.fixture(scope="session")
def tf() -> Any:
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="session")
def convert(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Converts a folder with settings, in this process; gives the dataset's folder."""

    def run(source: Path, **settings: Any) -> Path:
        output = tmp_path_factory.mktemp("dataset") / "out"
        flags = [f"--set={key.replace('__', '.')}={json.dumps(value)}" for key, value in settings.items()]
        assert launch([f"--input={source}", f"--output={output}", *flags], build) == 0
        return output

    return run


@pytest.fixture(scope="session")
def animals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes of 24 pictures in all, each 24 pixels wide and 16 high; one of them is grayscale."""
    folder = tmp_path_factory.mktemp("animals")
    for name, count in ANIMALS.items():
        (folder / name).mkdir()
        for number in range(count):
            mode = "L" if (name, number) == ("eel", 0) else "RGB"
            (folder / name / f"{number:02}.jpg").write_bytes(draw((name, number), (24, 16), mode))
    return folder


@pytest.fixture(scope="session")
def animal_dataset(animals: Path, convert: Callable[..., Path]) -> Path:
    """All 24 in the split train, in three shards."""
    return convert(animals, splits__fractions={"train": 1.0}, shards__count=3)


@pytest.fixture(scope="session")
def uneven_dataset(tmp_path_factory: pytest.TempPathFactory, convert: Callable[..., Path]) -> Path:
    """Six pictures of six sizes, from 20x10 to 25x15 (width by height)."""
    folder = tmp_path_factory.mktemp("uneven")
    (folder / "thing").mkdir()
    for number in range(6):
        (folder / "thing" / f"{number}.jpg").write_bytes(draw(number, (20 + number, 10 + number)))
    return convert(folder, splits__fractions={"train": 1.0})
