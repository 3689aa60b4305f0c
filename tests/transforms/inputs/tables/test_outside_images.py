import pytest

from recordmill.transforms.inputs.folder_sketch import FolderSketch, Names
from recordmill.transforms.inputs.sources.manifest import Manifest


def recognize(lines, images=(), only="", root="/in"):
    """How the table `r.csv` is recognized, next to images of the input."""
    data = "\n".join((*lines, "")).encode()
    sketch = FolderSketch({"": Names(("r.csv", *images))}, {"r.csv": data}, {}, only, root)
    return next(iter(Manifest.recognize(sketch)), None)


@pytest.mark.parametrize(
    ("header", "rows", "root"),
    [
        ("image_uri,label", ["gs://b/c/1.jpg,cat", "gs://b/d/2.jpg,dog"], "gs://b"),
        ("image_uri,label", ["gs://b/cat/1.jpg,cat", "gs://b/cat/2.jpg,cat"], "gs://b"),
        ("image_uri,label", ["gs://cat/1.jpg,cat", "gs://cat/2.jpg,cat"], "gs://cat"),
        ("image_uri,label", ["s3://b/x/1.jpg,cat", "s3://b/x/2.jpg,dog"], "s3://b/x"),
        ("path,split,class", ["/data/train/cat/1.jpg,TRAIN,Cat"] * 2, "/data"),
        ("path,class", ["/1.jpg,cat", "/data/2.jpg,dog"], "/"),
        ("photo,class", ["/data/1.jpg,cat", "/data/2.png,dog"], "/data"),
    ],
)
def test_images_outside_the_input_need_the_folder_that_holds_them(header, rows, root):
    found = recognize([header, *rows])
    assert found.settings["source"]["root"] == root
    assert found.settings["source"]["columns"]["uri"] == header.partition(",")[0]
    assert found.needed_keys == ("source.root",)
    assert found.needs.endswith(f"add --set source.root={root}")


@pytest.mark.parametrize(
    "rows",
    [
        ["gs://a/1.jpg,cat", "gs://b/2.jpg,dog"],
        ["gs://a/1.jpg,cat", "/data/2.jpg,dog"],
        ["/data/1.jpg,cat", "2.jpg,dog"],
        ["https://a/1.jpg,cat", "https://a/2.jpg,dog"],
        ["/in/1.jpg,cat", "/in/2.jpg,dog"],
        ["/data/1.txt,cat", "/data/2.txt,dog"],
    ],
)
def test_images_without_a_folder_around_them_are_not_recognized(rows):
    assert recognize(["path,class", *rows]) is None


def test_next_to_images_only_the_urls_of_a_chosen_table_count():
    urls, paths = ["path,class", "gs://b/1.jpg,cat"], ["path,class", "/old/1.jpg,cat"]
    assert recognize(urls, ["1.jpg"], only="r.csv").settings["source"]["root"] == "gs://b"
    assert recognize(urls, ["1.jpg"]) is None
    assert recognize(paths, ["1.jpg"], only="r.csv") is None


def test_tables_of_several_splits_have_one_folder():
    heads = {
        f"{split}.csv": f"path,class\n/data/{split}/1.jpg,cat\n/data/{split}/2.jpg,dog\n".encode()
        for split in ("train", "val")
    }
    sketch = FolderSketch({"": Names(tuple(heads))}, heads, {}, "", "/in")
    (found,) = Manifest.recognize(sketch)
    assert found.settings["source"]["root"] == "/data"
    assert found.settings["splits"] == {"from_source": {"train": "train", "val": "validation"}}
    assert found.needs.endswith("add --set source.root=/data")
