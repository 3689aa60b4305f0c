import io
import json
import tarfile
import zipfile

import pytest
from PIL import Image

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def picture(number):
    stream = io.BytesIO()
    Image.new("RGB", (32, 24), (20 * number, 90, 90)).save(stream, "JPEG")
    return stream.getvalue()


@pytest.fixture
def archives(tmp_path):
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as photos:
        for number in range(12):
            photos.writestr(f"{['rose', 'tulip'][number % 2]}/{number}.jpg", picture(number))
    with zipfile.ZipFile(tmp_path / "russian.zip", "w") as photos:
        for number in range(12):
            info = zipfile.ZipInfo(f"{['@@@@', '####'][number % 2]}/{number}.jpg")
            info.create_system = 0
            photos.writestr(info, picture(number))
    content = (tmp_path / "russian.zip").read_bytes()
    content = content.replace(b"@@@@", "роза".encode("cp866"))
    (tmp_path / "russian.zip").write_bytes(content.replace(b"####", "мята".encode("cp866")))
    (tmp_path / "shards").mkdir()
    for split in ("train", "val"):
        with tarfile.open(tmp_path / "shards" / f"{split}-000.tar", "w") as shard:
            for number in range(3):
                said = {
                    "species": ["rose", "tulip"][number % 2],
                    "score": number / 4,
                    "tags": ["a", "b"][:number],
                }
                parts = {
                    "jpg": picture(number),
                    "cls": b"%d" % number,
                    "json": json.dumps(said).encode(),
                }
                for extension, data in parts.items():
                    info = tarfile.TarInfo(f"{number}.{extension}")
                    info.size = len(data)
                    shard.addfile(info, io.BytesIO(data))
    return tmp_path


def test_the_page_does_what_it_says(archives, run_page):
    run_page("docs/archives.md", archives)

    def marker(name):
        return json.loads((archives / name / "recordmill.json").read_text(encoding="utf-8"))

    assert marker("photos-dataset")["ledger"]["written"] == 12
    assert marker("photos-dataset")["labels"] == {"rose": 0, "tulip": 1}
    assert marker("russian-dataset")["labels"] == {"мята": 0, "роза": 1}
    assert marker("shards-dataset")["labels"] == {"0": 0, "1": 1, "2": 2}
    assert {
        split: said["records"] for split, said in marker("shards-dataset")["splits"].items()
    } == {
        "train": 3,
        "validation": 3,
    }
    assert marker("more-dataset")["labels"] == {"rose": 0, "tulip": 1}
    assert marker("more-dataset")["ledger"]["written"] == 6
