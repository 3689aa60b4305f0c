import gzip
import io
import os
import tarfile
from dataclasses import replace

import orjson
import pytest

from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.archive_members import Member
from recordmill.transforms.inputs.sources.archives import (
    Archives,
    PartFeature,
    class_of,
    group_samples,
    value_in_part,
)
from recordmill.transforms.inputs.sources.source import list_file

PATH = "more/pets.train.tar"
BAD_NAME = "its name is empty, absolute or repeated, or has .. or a zero byte in it"


@pytest.fixture
def refer(tmp_path):
    """The references of a tar archive of files, and its own."""

    def run(files, **settings):
        uri = tmp_path / "pets.train.tar"
        with tarfile.open(uri, "w") as tar:
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        file = ImageRef(
            f"in/{PATH}", str(uri), uri.stat().st_size, "1", split=settings.pop("given", "")
        )
        return file, list(list_file(Archives(**settings), PATH, file))

    return run


@pytest.mark.parametrize(
    ("class_from", "label"),
    [("first_folder", "a"), ("last_folder", "b"), ("path", "a/b"), ("archive", "pets.train")],
)
def test_a_member_is_a_byte_range_with_the_class_of_its_folders(refer, class_from, label):
    file, (ref,) = refer({"./a/b/1.jpg": b"image"}, class_from=class_from)
    assert ref == replace(file, key=f"in/{PATH}/a/b/1.jpg", offset=512, length=5, label=label)
    content = Archives().read(ref, 5)
    assert (content.data, content.image, content.label) == (b"image", b"image", None)


def test_members_may_have_no_class_wherever_they_are(refer):
    _, refs = refer({"1.jpg": b"image", "a/2.jpg": b"image"}, class_from="none")
    assert [(ref.key.rpartition("/")[2], ref.status, ref.label) for ref in refs] == [
        ("1.jpg", "", ""),
        ("2.jpg", "", ""),
    ]


def test_a_member_in_no_folder_has_no_class(refer):
    _, (ref,) = refer({"1.jpg": b"image"})
    assert (ref.status, ref.reason, ref.detail) == (
        "rejected",
        "no_class",
        "the member is not in a class folder",
    )


def test_system_files_are_ignored_and_so_are_files_not_included(refer):
    names = ["__MACOSX/a/1.jpg", "a/@eaDir/1.jpg", "a/._1.jpg", "a/Thumbs.db", "a/1.txt", "a/1.jpg"]
    _, refs = refer(dict.fromkeys(names, b"x"), members=("*.jpg",))
    assert [(ref.status, ref.reason) for ref in refs] == [
        ("ignored", "system_file"),
        ("ignored", "system_file"),
        ("ignored", "hidden"),
        ("ignored", "system_file"),
        ("ignored", "not_included"),
        ("", ""),
    ]


def test_a_member_that_may_not_be_read_is_rejected_by_its_name(refer):
    _, (out, large) = refer({"a/../../x.jpg": b"x", "a/2.jpg": bytes(11)}, max_member_bytes=10)
    assert (out.key, out.reason, out.detail) == (f"in/{PATH}/a/../../x.jpg", "bad_member", BAD_NAME)
    assert (large.reason, large.detail) == (
        "bad_member",
        "it has 11 bytes, where source.max_member_bytes allows 10",
    )


def test_the_split_is_a_word_in_the_path(refer):
    split = r"(?P<split>train|val)[./]"
    _, refs = refer({"val/a.jpg": b"x"}, split=split)
    assert [ref.split for ref in refs] == ["train"]  # the first in more/pets.train.tar/val/a.jpg
    _, refs = refer({"val/a.jpg": b"x", "other/a.jpg": b"x"}, split=r"/(?P<split>train|val)/")
    assert [ref.split for ref in refs] == ["val", ""]
    _, refs = refer({"val/a.jpg": b"x"}, split=split, given="test")
    assert [ref.split for ref in refs] == ["test"]


def test_an_archive_is_never_nothing(refer, tmp_path):
    file, refs = refer({})
    assert refs == [file.notice("rejected", "bad_archive", "the archive is empty")]
    _, (_, ref) = refer({"a/1.jpg": b"x", "a/2.jpg": b"x"}, max_members=1)
    assert ref.detail == (
        "the rest of the archive cannot be read: it has more members than source.max_members "
        "allows (1)"
    )
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"PK\x03\x04")
    (ref,) = list_file(Archives(), "broken.zip", ImageRef("broken.zip", str(broken), 4))
    assert (ref.key, ref.reason) == ("broken.zip", "bad_archive")
    assert ref.detail.startswith("it is not a zip archive, or its end is missing")


@pytest.mark.parametrize(
    ("cut", "refs_left", "damage"),
    [
        (2 * 2048 + 200, ["1.jpg", "2.jpg"], "the header at byte 4096 is damaged"),
        (
            2 * 2048,
            ["1.jpg", "2.jpg"],
            "it has no end mark: it may have been cut after its last member",
        ),
        (2 * 2048 - 1000, ["1.jpg"], "the header at byte 3072 is damaged"),
        (2048 + 200, [], "the header at byte 2048 is damaged"),
    ],
)
def test_the_last_sample_before_damage_is_read_if_it_lacks_no_part_of_others(
    refer, tmp_path, cut, refs_left, damage
):
    file, _ = refer({f"{number}.{part}": b"1" for number in (1, 2, 3) for part in ("jpg", "cls")})
    archive = tmp_path / "pets.train.tar"
    archive.write_bytes(archive.read_bytes()[:cut])
    *refs, last = list_file(Archives(labels="beside"), PATH, replace(file, size=cut))
    assert [ref.key.rpartition("/")[2] for ref in refs if not ref.status] == refs_left
    prefix = "the rest of the archive cannot be read: " if refs_left else ""
    assert (last.reason, last.detail) == ("bad_archive", f"{prefix}{damage}")


def test_whole_samples_before_the_damage_of_a_packed_tar_are_read(refer, tmp_path):
    file, _ = refer(
        {f"{number}.{part}": os.urandom(3000) for number in (1, 2, 3) for part in ("jpg", "txt")}
    )
    packed = gzip.compress((tmp_path / "pets.train.tar").read_bytes())[:-4000]
    (tmp_path / "pets.tgz").write_bytes(packed)
    file = replace(file, uri=str(tmp_path / "pets.tgz"), size=len(packed))
    *refs, last = list_file(Archives(labels="beside", label_part=""), "pets.tgz", file)
    assert [ref.key.rpartition("/")[2] for ref in refs] == ["1.jpg", "2.jpg"]
    why = "the gzip file is damaged: the gzip stream ends early: the file was truncated"
    assert (last.reason, last.detail) == (
        "bad_archive",
        f"the rest of the archive cannot be read: {why}",
    )


def test_members_next_to_an_image_are_its_label_and_features(refer):
    features = {
        "caption": PartFeature(part="txt"),
        "tags": PartFeature(part="json.tags", many=True),
    }
    files = {
        "1.jpg": b"image",
        "1.cls": b"1\n",
        "1.txt": b"a dog",
        "1.json": b'{"tags": ["x", "y"]}',
        "1.npy": b"?",
    }
    settings = {"labels": "beside", "class_names": ("cat", "dog"), "features_from": features}
    file, (ref, unused) = refer(files, **settings)
    assert unused == file.notice("not_stored", ".npy")
    expected = orjson.dumps({"caption": "a dog", "tags": ["x", "y"]}).decode()
    assert ref == replace(
        file, key=f"in/{PATH}/1.jpg", offset=512, length=5, label="dog", features=expected
    )
    source = Archives(**settings)
    assert source.classes() == {"cat": 0, "dog": 1}
    assert source.features() == (
        Feature("caption", "bytes", "caption", "`txt` beside the image"),
        Feature("tags", "bytes", "tags", "`json.tags` beside the image", many=True),
    )


def test_images_need_no_sibling_members_where_none_are_asked_for(refer):
    _, refs = refer({"1.jpg": b"x", "2.png": b"y"}, labels="beside", label_part="")
    assert [(ref.status, ref.label, ref.features) for ref in refs] == [("", "", "")] * 2


@pytest.mark.parametrize(
    ("files", "key", "detail"),
    [
        ({"1.jpg": b"x"}, "1.jpg", "cls is missing or empty"),
        ({"1.jpg": b"x", "1.cls": b"\xff"}, "1.jpg", "cls cannot be read: it is not UTF-8"),
        (
            {"1.jpg": b"x", "1.cls": bytes(2**20 + 1)},
            "1.jpg",
            "1.cls: it has 1048577 bytes: more than",
        ),
        ({"1.cls": b"1", "1.gif": b"x"}, "1.cls", "there is no image next to cls, gif"),
    ],
)
def test_a_sample_that_lacks_something_is_one_rejected_image(refer, files, key, detail):
    _, (ref, *counts) = refer(files, labels="beside", image_parts=("jpg",))
    assert (ref.key, ref.status, ref.reason) == (f"in/{PATH}/{key}", "rejected", "bad_sample")
    lacks_label = key == "1.jpg" and "1.cls" not in files
    assert [(each.status, each.reason) for each in counts] == [
        ("unclaimed", "unlabeled") for _ in range(lacks_label)
    ]
    assert ref.detail.startswith(detail)


def test_samples_without_an_image_that_have_one_name_are_two_rejected_ones(refer):
    """The members of a sample that do not stand together are samples of their own: one key would
    fail the run."""
    _, refs = refer({"1.cls": b"1", "2.jpg": b"x", "2.cls": b"1", "1.txt": b"1"}, labels="beside")
    assert [(ref.key.rpartition("/")[2], ref.reason) for ref in refs] == [
        ("1.cls", "bad_sample"),
        ("2.jpg", ""),
        ("1.txt", "bad_sample"),
    ]


def test_an_image_that_changed_is_found_when_it_is_read(refer):
    file, (ref,) = refer({"a/1.jpg": b"image"})
    with pytest.raises(Rejected, match="changed: 5 bytes when it was listed, less"):
        Archives().read(replace(ref, offset=file.size - 2), 100)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"split": "("}, r"source\.split '\(' is not a regular expression"),
        ({"split": "x"}, r"source\.split 'x' has no group"),
        (
            {"features_from": {"x": PartFeature(part="txt")}},
            r"source\.features_from needs `source\.labels: beside`",
        ),
        (
            {"labels": "beside", "features_from": {"x": PartFeature(part="")}},
            r"source\.features_from\.x\.part is empty",
        ),
        (
            {"labels": "beside", "class_names": ("a", "a")},
            r"^source\.class_names: two classes are named 'a'$",
        ),
    ],
)
def test_settings_that_cannot_be_name_their_key(settings, message):
    with pytest.raises(ValueError, match=message):
        Archives(**settings)


def test_members_of_one_name_are_a_sample():
    names = [
        "a/1.JPG",
        "a/1.cls",
        "a/1.seg.png",
        "a/2.png",
        "b/2.png",
        "b/v1.2/3.jpg",
        "x",
        "a/1.txt",
    ]
    assert [sorted(parts) for parts in group_samples(map(Member, names))] == [
        ["cls", "jpg", "seg.png"], ["png"], ["png"], ["jpg"], [""], ["txt"]
    ]  # fmt: skip


def test_of_several_images_the_first_of_the_list_is_taken(refer):
    file, (ref, other) = refer({"1.png": b"x", "1.jpg": b"x"}, labels="beside", label_part="")
    assert ref.key.endswith("1.jpg")
    assert other == file.notice("not_stored", ".png")


def test_parts_are_texts_or_values_of_the_json():
    texts = {"cls": b" 7\n", "txt": "ü b\r\n".encode(), "json": b'{"a.b": [1, 2], "n": null}'}
    assert [
        value_in_part(part, texts)
        for part in ("cls", "txt", "json.a.b", "json.n", "json.c", "other")
    ] == [
        "7",
        "ü b",
        [1, 2],
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("part", "data", "message"),
    [
        ("txt", b"\xff", "txt cannot be read: it is not UTF-8"),
        ("json.a", b"{", "json cannot be read"),
        ("json.a", b"[1]", "json is not an object"),
    ],
)
def test_a_part_that_cannot_be_read_is_reported(part, data, message):
    with pytest.raises(Rejected, match=message):
        value_in_part(part, {part.partition(".")[0]: data})


@pytest.mark.parametrize(
    ("settings", "value", "expected"),
    [
        ({}, "text\f\0", "text\f\0"),
        ({}, 7, "7"),
        ({"type": "int64"}, "-7", -7),
        ({"type": "int64"}, 7, 7),
        ({"type": "int64"}, True, 1),
        ({"type": "float"}, "1.5", 1.5),
        ({"type": "float"}, 2, 2.0),
        ({"many": True}, ["a", "b"], ["a", "b"]),
        ({"many": True, "type": "float"}, None, []),
        ({"default": "none"}, None, "none"),
        ({"default": 1, "type": "float"}, None, 1.0),
    ],
)
def test_a_feature_takes_what_is_of_its_type(settings, value, expected):
    found = PartFeature(part="json.x", **settings).value_of(value)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("settings", "value", "message"),
    [
        ({}, 7.5, "json.x: 7.5 is not text"),
        ({}, None, "json.x is missing"),
        ({"type": "int64"}, "1.0", "json.x: '1.0' is not of type int64"),
        ({"type": "int64"}, "1_0", "json.x: '1_0' is not of type int64"),
        ({"type": "int64"}, 1.0, "json.x: 1.0 is not of type int64"),
        ({"type": "int64"}, 2**63, "is not of type int64"),
        ({"type": "int64"}, [1], r"json.x: \[1\] is not of type int64"),
        ({"type": "float"}, "x", "json.x: 'x' is not of type float"),
        ({"type": "float"}, True, "json.x: True is not of type float"),
        ({"type": "float"}, "1e300", "is not of type float"),
        ({"type": "float"}, "nan", "json.x: 'nan' is not of type float"),
        ({"type": "float"}, "-inf", "is not of type float"),
        ({"many": True}, "a", "json.x is not a list"),
        ({"many": True}, ["a", True], "json.x: True is not text"),
    ],
)
def test_a_feature_refuses_what_is_not(settings, value, message):
    with pytest.raises(Rejected, match=message):
        PartFeature(part="json.x", **settings).value_of(value)


def test_a_feature_says_what_it_is():
    feature = PartFeature(part="txt", default="none").as_feature("image/caption")
    assert feature == Feature(
        "image/caption", "bytes", "image/caption", "`txt` beside the image", default=b"none"
    )


def test_a_feature_without_a_part_names_its_key():
    with pytest.raises(
        ValueError, match=r"^source\.features_from\.x\.part is empty: name the part"
    ):
        PartFeature(part="").check("x")


@pytest.mark.parametrize(
    ("label", "names", "expected"),
    [("7", (), "7"), (7, (), "7"), ("cat", (), "cat"), ("1", ("a", "b"), "b")],
)
def test_a_label_is_a_name_or_a_number(label, names, expected):
    assert class_of(label, "cls", names) == expected


@pytest.mark.parametrize(
    ("label", "names", "message"),
    [
        (None, (), "cls is missing or empty"),
        ("", ("a",), "cls is missing or empty"),
        ("2", ("a", "b"), r"cls is 2, where source\.class_names has 2 classes, from 0"),
        ("-1", ("a", "b"), "cls is -1"),
        ("cat", ("a", "b"), "cls: 'cat' is not of type int64"),
        (1.5, (), r"cls: 1\.5 is not of type int64"),
        ("x" * 5000, (), "cls has 5,000 characters, but a name has at most 4,096"),
    ],
)
def test_a_label_that_is_neither_is_refused(label, names, message):
    with pytest.raises(Rejected, match=message):
        class_of(label, "cls", names)
