import pytest

from recordmill.transforms.inputs.folder_sketch import (
    FolderSketch,
    Names,
    given_splits,
    split_for_word,
    split_pattern,
    stems_of,
)

SKETCH = FolderSketch.of(
    ["train/cat/1.jpg", "train/2.PNG", "Val/2.txt", "notes.md"], {"Val/2.txt": b"x"}
)


def test_names_are_those_of_folders():
    assert SKETCH.names == {
        "": Names(("notes.md",), ("Val", "train")),
        "train": Names(("2.PNG",), ("cat",)),
        "train/cat": Names(("1.jpg",)),
        "Val": Names(("2.txt",)),
    }
    assert (SKETCH.top.files, SKETCH.at("nowhere")) == (("notes.md",), Names())
    assert (SKETCH.split_folders, SKETCH.image_folders, SKETCH.has_images) == (
        ("Val", "train"),
        ("train",),
        True,
    )
    assert [SKETCH.has_folder(path) for path in ("", "train", "train/cat", "train/dog")] == [
        True,
        True,
        True,
        False,
    ]


def test_folders_are_splits_only_if_all_are():
    assert FolderSketch.of(["train/1.jpg", "cat/1.jpg"]).split_folders == ()
    assert FolderSketch.of(["1.jpg"]).split_folders == ()


def test_a_folder_has_a_sketch_of_its_own():
    assert SKETCH.below("train") == FolderSketch.of(["cat/1.jpg", "2.PNG"])
    assert SKETCH.below("Val") == FolderSketch.of(["2.txt"])


def test_the_first_file_of_an_ending_that_was_looked_into():
    assert (
        SKETCH.first_head("Val", ".txt"),
        SKETCH.first_head("Val", ".json"),
        SKETCH.first_head("", ".txt"),
    ) == (
        b"x",
        b"",
        b"",
    )


def test_the_first_file_that_holds_a_sign():
    sketch = FolderSketch.of(
        ["a/1.xml", "a/2.xml"],
        {"1.xml": b"<b", "a/1.xml": b"", "a/2.xml": b"<b>", "a/3.xml": b"<b"},
    )
    assert (
        sketch.first_head("a", ".xml", sign=b"<b"),
        sketch.first_head("a", ".xml", sign=b"<c"),
    ) == (b"<b>", b"")


def test_files_with_the_name_of_an_image():
    names = Names(("1.jpg", "1.txt", "2.txt", "3.JPG", "3.xml"))
    assert (names.beside_images(".txt"), names.beside_images(".xml")) == (("1.txt",), ("3.xml",))
    assert stems_of(names.images) == {"1", "3"}


def test_words_in_the_names_of_archives():
    names = FolderSketch.of(["a-train-00.tar", "a-val-00.tgz", "b.zip", "train.txt"])
    assert names.archive_splits == {}
    assert FolderSketch.of(["a-train-00.tar", "a-val-00.tgz"]).archive_splits == given_splits(
        "from_source", ["train", "val"]
    )


@pytest.mark.parametrize(
    ("word", "split"),
    [
        ("train", "train"),
        ("Val", "validation"),
        ("valid", "validation"),
        ("test2017", "test"),
        ("cat", None),
        ("", None),
    ],
)
def test_words_for_splits(word, split):
    assert split_for_word(word) == split


@pytest.mark.parametrize(
    ("words", "mapping"),
    [
        (["test", "valid", "train"], {"train": "train", "valid": "validation", "test": "test"}),
        (["val2017", "train2017"], {"train2017": "train", "val2017": "validation"}),
        (["train", "mini val"], {"train": "train", "mini val": "mini_val"}),
        (["day", "night"], None),
        (["train", ""], None),
        ([], None),
    ],
)
def test_splits_are_given_where_words_say_so(words, mapping):
    assert given_splits("from_source", words) == (
        {"splits": {"from_source": mapping}} if mapping else {}
    )
    if mapping:
        assert list(given_splits("from_source", words)["splits"]["from_source"]) == list(mapping)


@pytest.mark.parametrize(
    ("names", "pattern", "words"),
    [
        (["a_val.csv", "a_train.csv"], r"a_(?P<split>train|val)\.csv", ["val", "train"]),
        (["train2017.json"], r"(?P<split>train)[0-9]+\.json", ["train"]),
        (
            ["training.txt", "testing.txt"],
            r"(?P<split>training|testing)\.txt",
            ["training", "testing"],
        ),
        (["train.csv", "b_val.csv"], "", [""]),
        (["Val.txt", "Train.txt"], r"(?P<split>Train|Val)\.txt", ["Val", "Train"]),
        (["trains.csv"], "", [""]),
        ([], "", [""]),
    ],
)
def test_the_pattern_of_names_that_differ_in_a_word(names, pattern, words):
    assert split_pattern(names) == (pattern, words)
