import hashlib
import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import simplejpeg
from PIL import Image, ImageOps

from recordmill.pipeline import sample
from recordmill.pipeline.sample import SIDES, ensure_sample

# The odd files, and what a conversion makes of each.
ODDITIES = {
    ".DS_Store": "ignored",
    "circle/16_bit.png": "written",
    "circle/Thumbs.db": "ignored",
    "circle/for_print.jpg": "written",
    "circle/png_inside.jpg": "written",
    "circle/same_as_a_square.jpg": "written",
    "hexagon/empty.jpg": "rejected",
    "hexagon/moving.gif": "written",
    "octagon/a_text.jpg": "rejected",
    "octagon/on_its_side.jpg": "written",
    "pentagon/cut_out.png": "written",
    "square/black_and_white.jpg": "written",
    "square/cut_short.jpg": "rejected",
    "triangle/on_its_side.jpg": "written",
    "triangle/upside_down.jpg": "written",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return ensure_sample(tmp_path_factory.mktemp("out") / "sample")


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def opened(path: Path) -> Image.Image:
    image = Image.open(io.BytesIO(path.read_bytes()))
    image.load()
    return image


def test_counts(folder):
    assert Counter(path.split("/")[0] for path in contents(folder)) == {
        "circle": 45,
        "hexagon": 42,
        "octagon": 42,
        "pentagon": 41,
        "square": 42,
        "triangle": 42,
        ".DS_Store": 1,
    }
    assert Counter(ODDITIES.values()) + Counter(written=240) == {
        "written": 250,
        "rejected": 3,
        "ignored": 2,
    }


def test_every_file_is_plain_or_a_declared_oddity(folder):
    plain = {f"{subject}/{subject}_{number:02}.jpg" for subject in SIDES for number in range(40)}
    assert set(contents(folder)) == plain | set(ODDITIES)


@pytest.mark.parametrize("subject", SIDES)
def test_plain_pictures_are_small_photographs(folder, subject):
    pictures = [opened(folder / subject / f"{subject}_{number:02}.jpg") for number in range(40)]
    assert {(picture.format, picture.mode) for picture in pictures} == {("JPEG", "RGB")}
    assert all(160 <= side <= 320 for picture in pictures for side in picture.size)
    assert {picture.width > picture.height for picture in pictures} == {True, False}
    assert len({picture.tobytes() for picture in pictures}) == 40


@pytest.mark.parametrize(
    ("path", "container", "mode"),
    [
        ("hexagon/moving.gif", "GIF", "P"),
        ("pentagon/cut_out.png", "PNG", "RGBA"),
        ("square/black_and_white.jpg", "JPEG", "L"),
        ("circle/16_bit.png", "PNG", "I;16"),
        ("circle/for_print.jpg", "JPEG", "CMYK"),
        ("circle/png_inside.jpg", "PNG", "RGB"),
    ],
)
def test_odd_kinds(folder, path, container, mode):
    image = opened(folder / path)
    assert (image.format, image.mode) == (container, mode)


@pytest.mark.parametrize(
    ("path", "orientation"),
    [
        ("octagon/on_its_side.jpg", 8),
        ("triangle/on_its_side.jpg", 6),
        ("triangle/upside_down.jpg", 3),
    ],
)
def test_turned_pictures_are_upright_once_their_tag_is_honored(folder, path, orientation):
    image = opened(folder / path)
    assert image.getexif()[0x0112] == orientation
    upright = np.asarray(ImageOps.exif_transpose(image), dtype=float)
    top, bottom = upright[:20, :, 2].mean(), upright[-20:, :, 2].mean()
    assert top > bottom + 20  # the sky's blue is above


def test_the_gif_moves(folder):
    assert opened(folder / "hexagon/moving.gif").n_frames == 4


def test_the_cut_out_hides_its_background(folder):
    pixels = np.asarray(opened(folder / "pentagon/cut_out.png"))
    colors, alpha = pixels[:, :, :3], pixels[:, :, 3]
    assert (alpha.min(), alpha.max()) == (0, 255)
    assert colors[alpha == 0].std() > 5


def test_sixteen_bits_are_used(folder):
    assert np.asarray(opened(folder / "circle/16_bit.png")).max() > 40_000


def test_one_picture_has_two_labels(folder):
    assert [path for path, times in Counter(contents(folder).values()).items() if times > 1] == [
        contents(folder)["circle/same_as_a_square.jpg"]
    ]
    assert (
        contents(folder)["square/square_00.jpg"] == contents(folder)["circle/same_as_a_square.jpg"]
    )


def test_the_cut_picture_ends_like_a_whole_one(folder):
    cut = (folder / "square/cut_short.jpg").read_bytes()
    assert cut.startswith(b"\xff\xd8")
    assert cut.endswith(b"\xff\xd9")
    with pytest.raises(ValueError, match="premature end"):
        simplejpeg.decode_jpeg(cut, strict=True)


def test_files_that_are_not_images(folder):
    assert (folder / "hexagon/empty.jpg").read_bytes() == b""
    assert (
        folder / "octagon/a_text.jpg"
    ).read_text() == "This was meant to be a picture of an octagon.\n"


def test_an_interrupted_drawing_leaves_nothing(tmp_path, monkeypatch):
    written = []

    def interrupted(path: Path, content: bytes) -> None:
        written.append(path)
        if len(written) == 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ensure_sample(tmp_path / "sample")
    assert len(written) == 5
    assert list(tmp_path.iterdir()) == []


def test_a_finished_sample_is_reused(folder, monkeypatch):
    monkeypatch.setattr(sample, "_files", lambda: pytest.fail("drawn again"))
    assert ensure_sample(folder) == folder


def test_two_runs_may_draw_at_once(tmp_path, monkeypatch):
    def overtaken() -> dict[str, bytes]:
        (tmp_path / "sample").mkdir()
        (tmp_path / "sample" / "theirs.jpg").touch()
        return {"ours.jpg": b""}

    monkeypatch.setattr(sample, "_files", overtaken)
    assert ensure_sample(tmp_path / "sample") == tmp_path / "sample"
    assert list(contents(tmp_path)) == ["sample/theirs.jpg"]


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        ensure_sample(tmp_path / "file" / "sample")


def test_the_default_is_below_the_working_directory_and_has_the_same_bytes(
    folder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert ensure_sample() == Path("out/sample-3")
    found = contents(tmp_path / "out/sample-3")
    assert len(found) == 255
    assert found == contents(folder)
