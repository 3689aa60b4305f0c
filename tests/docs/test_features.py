import hashlib

import numpy as np
import pytest
from PIL import Image

from recordmill.reading.example import examples_as_numpy

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture
def folder(tmp_path):
    for number in range(20):
        label = ("cat", "dog")[number % 2]
        image = tmp_path / "images" / label / f"{number}.png"
        sound = tmp_path / "sounds" / label / f"{number}.wav"
        for path in (image, sound):
            path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 6), (10 * number, 51, 255)).save(image)
        sound.write_bytes(bytes([number, 0, 0, 1]))
    return tmp_path


def by_digest(folder):
    files = [file for file in folder.iterdir() if "shard_" in file.name]
    examples = [each for file in files for each in examples_as_numpy(str(file))]
    return {np.asarray(each["sha256"]).item().decode(): each for each in examples}


def test_the_page_does_what_it_says(folder, run_page):
    run_page("docs/features.md", folder)
    built_in, own, sounds = (
        by_digest(folder / name) for name in ("vectors", "own-vectors", "sound-vectors")
    )
    for number in range(20):
        label = ("cat", "dog")[number % 2]
        data = (folder / "images" / label / f"{number}.png").read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        assert built_in[digest]["feature"].tolist() == [10 * number, 51, 255, 0, 0, 0]
        assert own[digest]["feature"] == pytest.approx([10 * number / 255, 0.2, 1])
        assert np.asarray(own[digest]["zeros"]).item() == data.count(0)
        assert np.asarray(own[digest]["label"]).item() == number % 2
        sound = bytes([number, 0, 0, 1])
        expected = [sound.count(value) / 4 for value in range(256)]
        assert sounds[hashlib.sha256(sound).hexdigest()]["feature"].tolist() == expected
    old = folder / "old-vectors"
    assert {file.name for file in old.iterdir() if "shard_" in file.name} == {
        f"shard_{n}" for n in range(4)
    }
    assert set(by_digest(old)) == {f"{number}.png" for number in range(20)}
    assert len(built_in) == len(own) == len(sounds) == 20
