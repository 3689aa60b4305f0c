import io
from pathlib import Path

import pytest
import simplejpeg
from PIL import Image

from benchmarks import photographs
from recordmill.imaging.strip_metadata import find_metadata

SMALL = (64, 48)


@pytest.fixture(autouse=True)
def _small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(photographs, "POOL", 20)


def test_numbered_differs_in_bytes_only() -> None:
    plain = photographs.photograph(0)
    first, second = photographs.numbered(plain, 1), photographs.numbered(plain, 2)
    assert len({plain, first, second}) == 3
    for jpeg in (first, second):
        assert (simplejpeg.decode_jpeg(jpeg, strict=True) == simplejpeg.decode_jpeg(plain)).all()
    with Image.open(io.BytesIO(second)) as image:
        assert (image.format, image.size, image.info["comment"]) == (
            "JPEG",
            (500, 375),
            b"photograph 2",
        )


def test_bare_photographs_have_no_metadata_and_others_much() -> None:
    plain = photographs.photograph(0)
    bare, exif = (
        [mark(plain, number) for number in (1, 70_000)]
        for mark in (photographs.bare, photographs.with_exif)
    )
    assert len({*bare, *exif}) == 4
    assert [find_metadata(jpeg, "JPEG") for jpeg in bare] == [[], []]
    assert [find_metadata(jpeg, "JPEG") for jpeg in exif] == [["Exif", "GPS position"]] * 2
    for jpeg in (*bare, *exif):
        assert (simplejpeg.decode_jpeg(jpeg, strict=True) == simplejpeg.decode_jpeg(plain)).all()
    with Image.open(io.BytesIO(exif[1])) as image:
        assert image.getexif()[0x010E] == "photograph 70000"
    assert len(exif[0]) > len(plain) + 10_000
    with pytest.raises(ValueError, match="JFIF"):
        photographs.bare(photographs.numbered(plain, 1), 1)


def test_make_fills_20_classes_with_distinct_files_once(tmp_path: Path) -> None:
    folder = photographs.make(30, tmp_path, size=SMALL)
    paths = sorted(folder.rglob("*.jpg"))
    contents = {path: path.read_bytes() for path in paths}
    assert sorted({path.parent.name for path in paths}) == [
        f"class_{label:02}" for label in range(20)
    ]
    assert len(paths) == len(set(contents.values())) == 30
    assert photographs.warm(folder) == sum(map(len, contents.values()))

    written = [path.stat().st_mtime_ns for path in paths]
    assert photographs.make(30, tmp_path, size=SMALL) == folder
    assert [path.stat().st_mtime_ns for path in paths] == written

    again = photographs.make(30, tmp_path / "elsewhere", size=SMALL)
    assert {again / path.relative_to(folder): content for path, content in contents.items()} == {
        path: path.read_bytes() for path in again.rglob("*.jpg")
    }


def test_make_starts_over_after_an_interruption(tmp_path: Path) -> None:
    folder = photographs.make(3, tmp_path, size=SMALL)
    folder.rename(folder.with_name(folder.name + ".unfinished"))
    assert len(list(photographs.make(3, tmp_path, size=SMALL).rglob("*.jpg"))) == 3


def test_own_photographs_are_the_pool(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    jpeg = photographs.photograph(0, *SMALL)
    (own / "a.JPG").write_bytes(jpeg)
    (own / "notes.txt").write_text("no image")
    folder = photographs.make(2, tmp_path / "work", own)
    assert {path.read_bytes() for path in folder.rglob("*.jpg")} == {
        photographs.numbered(jpeg, 0),
        photographs.numbered(jpeg, 1),
    }
