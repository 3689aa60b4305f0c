"""Files next to class folders that carry no labels, and folders that the user takes for classes."""

import pytest
from followed_ways import digests, each_of, found_in, of_class
from paired_inputs import counted, photo, photos
from peer import read_dataset
from printed_commands import printed_flags, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

N = counted(6)
CLASSES = each_of(("cat", "dog"), lambda at: photos(at, N))
XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'></x:xmpmeta>"
XML = (
    b"<annotation><filename>000.jpg</filename><size><width>24</width><height>16</height></size>"
    b"<object><name>cat</name><bndbox><xmin>5</xmin><ymin>6</ymin><xmax>20</xmax><ymax>12</ymax>"
    b"</bndbox></object></annotation>"
)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("class_names.txt", b"cat\ndog\n"),
        ("classes.json", b'["cat", "dog"]'),
        ("class_indices.json", b'{"0": "cat", "1": "dog"}'),
        ("notes.txt", b"These images were taken in 2019 by us. They show pets.\n"),
        ("cat/notes.txt", b"These images were taken in 2019 by us. They show pets.\n"),
        ("results/log.txt", b"ok\n"),
        ("training_log.txt", b"done\n"),
        ("cat/000.xmp", XMP),
        ("cat/000.jpg.xmp", XMP),
        ("dataset.yaml", b"description: pets\nurl: http://x\n"),
    ],
)
def test_what_carries_no_labels_does_not_stop_and_is_not_an_image(path, content, tmp_path, run_in):
    write_files(tmp_path / "in", {**CLASSES, path: content})
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert "rejected" not in err
    assert found_in(tmp_path / "out", False) == digests(CLASSES, of_class)


@pytest.mark.parametrize(
    ("path", "content", "shown"),
    [
        ("class_names.txt", b"dog\ncat\n", "class_names.txt (files of an unknown kind)"),
        ("classes.json", b'["cat", "emu"]', "classes.json (JSON)"),
        ("cat/movie.mp4", b"\0\0\0 ftypmp42", "cat/movie.mp4 (video)"),
        ("cat/logo.svg", b"<svg></svg>", "cat/logo.svg (drawing in SVG)"),
        ("cat/seqinfo.ini", b"[Sequence]\nname=x\n", "cat/seqinfo.ini (INI)"),
    ],
)
def test_what_may_carry_labels_is_named_as_what_it_is(path, content, shown, tmp_path, run_in):
    write_files(tmp_path / "in", {**CLASSES, path: content})
    code, _, err = run_in(["--input", "in"])
    assert (code, f": {shown};" in err) == (2, True), err
    (flags,) = printed_flags(err.partition("recordmill run --input in")[2])
    code, _, err = run_in(["--input", "in", *flags])
    assert code == 0, err
    assert found_in(tmp_path / "out", False) == digests(CLASSES, of_class)


@pytest.mark.parametrize("ending", ["xml", "txt", "json"])
def test_texts_in_class_folders_are_not_images_if_the_user_takes_these(ending, tmp_path, run_in):
    content = {"xml": XML, "txt": b"0 .5 .5 .2 .2\n", "json": b'{"shapes": []}'}[ending]
    texts = {f"{path[:-3]}{ending}": content for path in CLASSES}
    write_files(tmp_path / "in", CLASSES | texts)
    code, _, err = run_in(["--input", "in", "--set", "source.kind=class_folders"])
    assert code == 0, err
    assert f"annotations (12), such as cat/000.{ending}." in err
    assert "rejected" not in err
    assert found_in(tmp_path / "out", False) == digests(CLASSES, of_class)


def test_a_class_folder_of_few_figures_is_worth_a_look(tmp_path, run_in):
    write_files(tmp_path / "in", {**CLASSES, "docs/figure1.png": photo("f", "PNG")})
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    text = " ".join(err.split())
    assert (
        "Class docs has 1 image, and a name that seldom is a class: if it is none, leave it out "
        "with --set 'ignore=[/docs/]'."
    ) in text
    code, _, err = run_in(
        ["--input", "in", *next(printed_flags(text.partition("leave it out")[2]))]
    )
    assert code == 0, err
    assert {each.label for each in read_dataset(tmp_path / "out")} == {"cat", "dog"}


@pytest.mark.parametrize(
    ("form", "is_worth_a_look"),
    [
        ("images/{}_1_2_2017.jpg", True),
        ("images/{}-0-3.jpg", True),
        ("images/2023_05_{}_12.jpg", False),
        ("images/{}.jpg", False),
        ("images/{}_1.jpg", False),
        ("images/img_{}_1_2.jpg", False),
    ],
)
def test_names_of_several_numbers_are_worth_a_look(form, is_worth_a_look, tmp_path, run_in):
    write_files(tmp_path / "in", {form.format(20 + at): photo(at) for at in range(12)})
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert ("several numbers each" in " ".join(err.split())) == is_worth_a_look
