import errno
import os
import unicodedata
from dataclasses import dataclass, replace

import apache_beam as beam
import pytest
from apache_beam.io.filesystem import FileMetadata, FileSystem, MatchResult
from apache_beam.testing.util import equal_to
from eager_beam import assert_that, new_pipeline

from recordmill import storage
from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import SplitSettings
from recordmill.schemas.settings.source import Input, ListingSettings
from recordmill.transforms import list_images as list_images_module
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.inputs.sources.source import Source
from recordmill.transforms.inputs.sources.voc import Voc
from recordmill.transforms.inputs.sources.yolo import Yolo
from recordmill.transforms.list_images import ListReferences, list_images
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import Summary

SOURCE = ClassFolders()


def write(root, *names):
    for name in names:
        path = os.path.join(os.fsencode(root), name if isinstance(name, bytes) else name.encode())
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"x" * 5)


def list_all(root, name="", **settings):
    return list(list_images(Input(str(root), name), SOURCE, ListingSettings(**settings)))


def brief(refs):
    return [(ref.key, ref.status or ref.label, ref.reason) for ref in refs]


def test_a_file_becomes_a_reference_with_all_that_is_known(tmp_path):
    write(tmp_path, "cat/1.jpg")
    path = tmp_path / "cat/1.jpg"
    assert list_all(tmp_path) == [
        ImageRef("cat/1.jpg", str(path), 5, str(path.stat().st_mtime_ns), label="cat")
    ]


def test_an_inputs_name_begins_its_keys_but_is_not_a_class(tmp_path):
    write(tmp_path, "cat/1.jpg")
    (ref,) = list_all(tmp_path, "photos")
    assert (ref.key, ref.label, ref.uri) == ("photos/cat/1.jpg", "cat", str(tmp_path / "cat/1.jpg"))


def test_keys_are_nfc_and_uris_are_as_stored(tmp_path):
    write(tmp_path, "cafe\u0301/1.jpg")
    (ref,) = list_all(tmp_path)
    assert (ref.key, ref.label) == ("caf\u00e9/1.jpg", "caf\u00e9")
    assert ref.uri == str(tmp_path / "cafe\u0301/1.jpg") != unicodedata.normalize("NFC", ref.uri)
    assert os.path.exists(ref.uri)


def test_a_name_that_is_not_utf8_is_rejected_and_shown(tmp_path):
    write(tmp_path, b"cat/a\xff.jpg")
    (ref,) = list_all(tmp_path)
    assert (ref.key, ref.status, ref.reason) == ("cat/a\\xff.jpg", "rejected", "bad_name")
    assert ref.detail == "the name is not UTF-8"
    for text in (ref.key, ref.uri):
        text.encode()


@pytest.mark.parametrize(
    ("settings", "status", "reason"),
    [
        ({"ignore": ("a*.jpg",)}, "ignored", "ignored"),
        ({"ignore": ("b*.jpg",)}, "rejected", "bad_name"),
        ({"include": ("*.jpg",)}, "rejected", "bad_name"),
        ({"include": ("*.csv",)}, "ignored", "not_included"),
    ],
)
def test_a_name_that_is_not_utf8_is_compared_with_patterns(tmp_path, settings, status, reason):
    write(tmp_path, b"cat/a\xff.jpg")
    (ref,) = list_all(tmp_path, **settings)
    assert (ref.key, ref.status, ref.reason) == ("cat/a\\xff.jpg", status, reason)


def test_a_hidden_name_that_is_not_utf8_stays_ignored(tmp_path):
    write(tmp_path, b".a\xff.jpg")
    assert brief(list_all(tmp_path)) == [(".a\\xff.jpg", "ignored", "hidden")]


def test_an_unreadable_folder_that_is_not_utf8_stays_fatal(tmp_path):
    folder = os.path.join(os.fsencode(tmp_path), b"a\xff")
    os.mkdir(folder)
    os.symlink(os.fsencode(tmp_path), os.path.join(folder, b"loop"))
    assert brief(list_all(tmp_path)) == [("a\\xff/loop", "fatal", "link_loop")]


SYSTEM = [".DS_Store", "Thumbs.db", "desktop.ini", "__MACOSX/1.jpg"]

SYSTEM_FOLDERS = (
    *("@eaDir", "#recycle", "#snapshot", "@Recycle", ".@__thumb"),
    *("$RECYCLE.BIN", "$Recycle.Bin", "System Volume Information", "FOUND.000"),
    *(".Trashes", ".fseventsd", ".Spotlight-V100", ".AppleDouble", "__MACOSX"),
    *("lost+found", ".Trash-1000", "__pycache__", ".ipynb_checkpoints", ".venv", "site-packages"),
    *("node_modules", ".git", ".svn", ".idea", ".vscode"),
)


def test_system_files_are_ignored(tmp_path):
    write(
        tmp_path,
        *(f"cat/{name}" for name in SYSTEM),
        "cat/.hidden.jpg",
        ".git/1.jpg",
        ".git/2.jpg",
        "cat/1.jpg",
    )
    assert brief(list_all(tmp_path)) == [
        (".git", "ignored", "system_file"),
        ("cat/.DS_Store", "ignored", "system_file"),
        ("cat/.hidden.jpg", "ignored", "hidden"),
        ("cat/1.jpg", "cat", ""),
        ("cat/Thumbs.db", "ignored", "system_file"),
        ("cat/__MACOSX", "ignored", "system_file"),
        ("cat/desktop.ini", "ignored", "system_file"),
    ]


@pytest.mark.parametrize("folder", SYSTEM_FOLDERS)
def test_folders_of_systems_and_tools_are_not_classes_at_any_depth(tmp_path, folder):
    write(tmp_path, f"{folder}/1.jpg", f"cat/{folder}/deep/2.jpg", "cat/3.jpg")
    assert sorted(brief(list_all(tmp_path))) == sorted(
        [
            (folder, "ignored", "system_file"),
            (f"cat/{folder}", "ignored", "system_file"),
            ("cat/3.jpg", "cat", ""),
        ]
    )


def test_classes_with_similar_names_are_classes(tmp_path):
    names = ["Found", "found.1000", "git", "recycle", "snapshot", "trash", "venv", "eaDir"]
    write(tmp_path, *(f"{name}/1.jpg" for name in names))
    assert sorted(brief(list_all(tmp_path))) == sorted(
        (f"{name}/1.jpg", name, "") for name in names
    )


def test_patterns_are_gitignores(tmp_path):
    write(
        tmp_path, "cat/1.jpg", "cat/2.txt", "cat/raw/3.jpg", "dog/4.JPG", "old/5.jpg", "old/6.jpg"
    )
    assert brief(
        list_all(
            tmp_path,
            include=("*.jpg", "*.JPG"),
            ignore=("/old/", "raw"),
            left_by_user=frozenset(["not_included"]),
        )
    ) == [
        ("cat/1.jpg", "cat", ""),
        ("cat/2.txt", "ignored", "not_included"),
        ("cat/raw", "ignored", "ignored"),
        ("dog/4.JPG", "dog", ""),
        ("old", "ignored", "ignored"),
    ]


def test_a_later_pattern_takes_an_earlier_one_back(tmp_path):
    write(tmp_path, "cat/1.jpg", "cat/2.jpg")
    assert brief(list_all(tmp_path, ignore=("cat/*", "!cat/2.jpg"))) == [
        ("cat/1.jpg", "ignored", "ignored"),
        ("cat/2.jpg", "cat", ""),
    ]


def test_the_first_folder_gives_the_split(tmp_path):
    write(tmp_path, "t/cat/1.jpg", "val/dog/2.jpg", "other/cat/3.jpg", "4.jpg", "t/5.jpg")
    refs = list_all(tmp_path, from_folders={"t": "train", "val": "validation"})
    assert [(ref.key, ref.split, ref.label, ref.reason) for ref in refs] == [
        ("4.jpg", "", "", "no_split"),
        ("other/cat/3.jpg", "", "", "no_split"),
        ("t/5.jpg", "train", "", "no_class"),
        ("t/cat/1.jpg", "train", "cat", ""),
        ("val/dog/2.jpg", "validation", "dog", ""),
    ]
    assert refs[0].detail == "the file is not in one of the split folders t, val"


def test_a_group_is_found_in_the_key(tmp_path):
    write(tmp_path, "cat/p1_a.jpg", "cat/p1_b.jpg", "cat/x.jpg", "cat/p_.jpg")
    refs = list_all(tmp_path, "in", group=r"^in/cat/p(?P<group>\d*)_")
    assert [(ref.key, ref.group, ref.reason) for ref in refs] == [
        ("in/cat/p1_a.jpg", "1", ""),
        ("in/cat/p1_b.jpg", "1", ""),
        ("in/cat/p_.jpg", "", "no_group"),
        ("in/cat/x.jpg", "", "no_group"),
    ]


def test_a_single_file_is_an_input(tmp_path, monkeypatch):
    write(tmp_path, "a.jpg")
    detail = "the file is not in a class folder"
    (ref,) = list_all(tmp_path / "a.jpg")
    version = str((tmp_path / "a.jpg").stat().st_mtime_ns)
    expected = ImageRef("a.jpg", str(tmp_path / "a.jpg"), 5, version).notice(
        "rejected", "no_class", detail
    )
    assert ref == expected
    monkeypatch.chdir(tmp_path)
    assert list_all("a.jpg") == [replace(expected, uri="./a.jpg")]


def test_an_absent_input_is_fatal(tmp_path):
    (ref,) = list_all(tmp_path / "absent")
    assert (ref.uri, ref.status, ref.reason) == (str(tmp_path / "absent"), "fatal", "missing_input")


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_slash_after_the_input_changes_nothing(tmp_path, slash):
    write(tmp_path, "cat/1.jpg")
    (ref,) = list_all(f"{tmp_path}{slash}")
    assert (ref.key, ref.uri) == ("cat/1.jpg", f"{tmp_path}/cat/1.jpg")


@pytest.mark.runner
def test_in_a_pipeline_every_input_is_listed(tmp_path):
    write(tmp_path, "one/cat/1.jpg", "two/cat/1.jpg", "two/.DS_Store")
    inputs = [Input(str(tmp_path / name), name) for name in ("one", "two")]
    expected = [ref for each in inputs for ref in list_images(each, SOURCE, ListingSettings())]
    assert len(expected) == 3
    with new_pipeline() as root:
        batches = root | beam.Create(inputs) | ListReferences(SOURCE, ListingSettings())
        assert_that(
            batches | beam.FlatMap(lambda batch: [*batch.refs, *batch.notices]), equal_to(expected)
        )


@pytest.mark.parametrize(("size", "expected"), [(4, [4, 4, 2]), (5, [5, 5]), (100, [10])])
def test_an_input_becomes_full_batches_and_a_rest(tmp_path, monkeypatch, size, expected):
    monkeypatch.setattr(list_images_module, "BATCH_SIZE", size)
    write(tmp_path, *(f"cat/{number}.jpg" for number in range(10)))
    step = ListReferences(SOURCE, ListingSettings())
    batches = list(step._list(Input(str(tmp_path))))
    assert [len(batch) for batch in batches] == expected
    assert [ref for batch in batches for ref in batch.refs] == list_all(tmp_path)


class BucketSystem(FileSystem):
    """An object store in memory: names and sizes, no folders."""

    files: dict[str, int] = {}  # noqa: RUF012

    @classmethod
    def scheme(cls):
        return "bucket"

    def has_dirs(self):
        return False

    def _list(self, prefix):
        return (
            FileMetadata(name, size, 12.5)
            for name, size in sorted(self.files.items())
            if name.startswith(prefix)
        )

    def join(self, basepath, *paths):
        return "/".join([basepath.rstrip("/"), *paths])

    def split(self, path):
        return tuple(path.rsplit("/", 1))

    def match(self, patterns, limits=None):
        return [
            MatchResult(
                p, self.match_files([FileMetadata(*f, 12.5) for f in self.files.items()], p)
            )
            for p in patterns
        ]

    def match_files(self, files, pattern):
        expression = self.translate_pattern(pattern)
        import re

        return [file for file in files if re.fullmatch(expression, file.path)]

    mkdirs = create = open = copy = rename = exists = size = last_updated = checksum = metadata = (
        delete
    ) = None


REMOTE = "bucket://b/da[ta]*"


def test_a_remote_folder_is_listed_by_prefix_whatever_its_name(monkeypatch):
    names = [
        "cat/1.jpg",
        "cat/[x]*.jpg",
        "cat/",
        "__MACOSX/1.jpg",
        "cat/.git/1",
        "cat/.git/2",
        "cafe\u0301/1.jpg",
        "3.jpg",
    ]
    outside = ["bucket://b/data/cat/no.jpg", f"{REMOTE}-other/cat/no.jpg", "bucket://b/da[ta]*.jpg"]
    monkeypatch.setattr(
        BucketSystem, "files", dict.fromkeys([*(f"{REMOTE}/{name}" for name in names), *outside], 7)
    )
    refs = list_all(REMOTE)
    assert sorted(brief(refs)) == [
        ("3.jpg", "rejected", "no_class"),
        ("__MACOSX", "ignored", "system_file"),
        ("caf\u00e9/1.jpg", "caf\u00e9", ""),
        ("cat/.git", "ignored", "system_file"),
        ("cat/1.jpg", "cat", ""),
        ("cat/[x]*.jpg", "cat", ""),
    ]
    by_key = {ref.key: ref for ref in refs}
    assert by_key["cat/[x]*.jpg"] == ImageRef(
        "cat/[x]*.jpg", f"{REMOTE}/cat/[x]*.jpg", 7, "12.5", label="cat"
    )
    assert by_key["caf\u00e9/1.jpg"].uri == f"{REMOTE}/cafe\u0301/1.jpg"


def test_a_remote_file_is_an_input(monkeypatch):
    monkeypatch.setattr(BucketSystem, "files", {f"{REMOTE}/a[1].jpg": 7, f"{REMOTE}/a1.jpg": 8})
    (ref,) = list_all(f"{REMOTE}/a[1].jpg")
    assert (ref.key, ref.uri, ref.size, ref.version) == (
        "a[1].jpg",
        f"{REMOTE}/a[1].jpg",
        7,
        "12.5",
    )


def test_an_absent_remote_input_is_fatal(monkeypatch):
    monkeypatch.setattr(BucketSystem, "files", {"bucket://b/other/1.jpg": 7})
    assert brief(list_all("bucket://b/misspelled")) == [("", "fatal", "missing_input")]


@pytest.mark.parametrize("method", ["describe", "list_below"])
def test_a_remote_input_that_may_not_be_read_is_fatal_where_it_cannot_be_listed(
    monkeypatch, method
):
    def fail(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(BucketSystem, "files", {f"{REMOTE}/cat/1.jpg": 7})
    monkeypatch.setattr(storage, method, fail)
    (ref,) = list_all(REMOTE)
    if method == "describe":  # a right to list is enough
        assert (ref.key, ref.status) == ("cat/1.jpg", "")
    else:
        assert (ref.status, ref.detail) == ("fatal", "the input cannot be read (permission denied)")


def test_first_folders_with_a_split_word_in_them_may_be_splits(tmp_path):
    for name in ("seg_train", "seg_test"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jpg").write_bytes(b"x")
    *_, fatal = list_images(Input(str(tmp_path)), ClassFolders(), ListingSettings())
    assert fatal.detail == (
        "the first folders are seg_test, seg_train, which could be splits or classes: "
        "add --set 'splits.from_folders={seg_test: test, seg_train: train}' if they are splits, "
        "or list the classes in labels.classes if they are classes"
    )
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat/1.jpg").write_bytes(b"x")
    *_, fatal = list_images(Input(str(tmp_path)), ClassFolders(), ListingSettings())
    assert fatal.detail.startswith("the first folders are seg_test, seg_train, which could be")
    for name in ("dog", "emu"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jpg").write_bytes(b"x")
    assert not [
        ref
        for ref in list_images(Input(str(tmp_path)), ClassFolders(), ListingSettings())
        if ref.status
    ]


@pytest.mark.parametrize("class_from", ["first_folder", "last_folder", "path"])
def test_first_folders_that_may_be_splits_are_fatal_unless_settings_decide(tmp_path, class_from):
    for path in ("Train/cat/1.jpg", "val/cat/2.jpg", "README.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x")

    def fatal(settings):
        refs = list_images(Input(str(tmp_path)), ClassFolders(class_from=class_from), settings)
        return [(ref.reason, ref.detail.split(":")[0]) for ref in refs if ref.status == "fatal"]

    ambiguous = (
        "split_words",
        "the first folders are Train, val, which could be splits or classes",
    )
    assert fatal(ListingSettings()) == [ambiguous]
    assert fatal(ListingSettings(classes_known=True)) == []
    assert fatal(ListingSettings(from_folders={"Train": "train", "val": "validation"})) == []
    assert fatal(ListingSettings(ignore=("val/",))) == [
        ("split_words", "the first folders are Train, which could be splits or classes")
    ]
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat/3.jpg").write_bytes(b"x")
    assert fatal(ListingSettings()) == ([ambiguous] if class_from == "first_folder" else [])


def test_first_folders_that_a_source_takes_no_classes_from_get_a_note(tmp_path):
    write(tmp_path, "train/images/1.jpg", "valid/images/2.jpg")

    def listed(**settings):
        return [
            (ref.key, ref.status)
            for ref in list_images(Input(str(tmp_path)), Yolo(), ListingSettings(**settings))
        ]

    files = [("train/images/1.jpg", ""), ("valid/images/2.jpg", "")]
    assert listed() == [*files, ("", "warning")]
    assert listed(from_source={"train": "train", "valid": "validation"}) == files
    *_, warning = list_images(Input(str(tmp_path), "pets"), Yolo(), ListingSettings())
    assert (warning.key, warning.detail) == (
        "pets",
        "the first folders are train, valid, which could be splits: "
        "add --set 'splits.from_folders={train: train, valid: valid}' to keep them",
    )


def test_files_that_concern_all_split_folders_belong_to_no_split(tmp_path):
    write(tmp_path, "train/images/1.jpg", "1.jpg", "classes.txt")
    (tmp_path / "data.yaml").write_text("names: [cat]")
    listing = ListingSettings(from_folders={"train": "train"}, ignore=("classes.txt",))
    refs = [
        (ref.key, ref.status, ref.split, ref.reason)
        for ref in list_images(Input(str(tmp_path)), Yolo(), listing)
        if not isinstance(ref, ClassNames)
    ]
    assert refs == [
        ("1.jpg", "rejected", "", "no_split"),
        ("classes.txt", "ignored", "", "ignored"),
        ("data.yaml", "ignored", "", "class_names"),
        ("train/images/1.jpg", "", "train", ""),
    ]


@dataclass(frozen=True)
class Words(Source):
    """The first letter of a file's name is its split."""

    files = ("*.jpg",)

    def list_references(self, path, file):
        yield replace(file, split=path[0] if path[0] != "_" else "")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [("_.jpg", "", ""), ("a.jpg", "", ""), ("b.jpg", "", "")]),
        (
            {"from_source": {"a": "train", "": "rest"}},
            [
                ("_.jpg", "rest", ""),
                ("a.jpg", "train", ""),
                ("b.jpg", "", "its split is 'b', which is not one of a, "),
            ],
        ),
        (
            {"from_source": {"a": "train", "b": "test"}},
            [("_.jpg", "", "it has no split"), ("a.jpg", "train", ""), ("b.jpg", "test", "")],
        ),
    ],
)
def test_words_of_the_source_decide_splits_only_where_they_are_named(tmp_path, settings, expected):
    write(tmp_path, "a.jpg", "b.jpg", "_.jpg")
    refs = sorted(
        list_images(Input(str(tmp_path)), Words(), ListingSettings(**settings)),
        key=lambda ref: ref.key,
    )
    assert [(ref.key, ref.split, ref.detail) for ref in refs] == expected
    assert {ref.reason for ref in refs if ref.status} <= {"no_split"}


def test_words_of_the_source_do_not_touch_splits_that_folders_give(tmp_path):
    write(tmp_path, "t/a.jpg", "val/_.jpg")
    listing = ListingSettings(from_folders={"t": "train", "val": "validation"})
    refs = list_images(Input(str(tmp_path)), Words(), listing)
    assert {ref.key: ref.split for ref in refs} == {"t/a.jpg": "train", "val/_.jpg": "validation"}


def test_files_that_name_images_are_counted_for_each_input(tmp_path):
    write(tmp_path, "images/1.jpg", "images/2.jpg")
    annotation = "<annotation><filename>{}.jpg</filename></annotation>"
    for number in (1, 2, 3):  # there is no third image
        (tmp_path / "marks").mkdir(exist_ok=True)
        (tmp_path / "marks" / f"{number}.xml").write_text(annotation.format(number))
    source = Voc(images="images")
    settings = ListingSettings(include=source.files, not_included=source.other_files)
    refs = list(list_images(Input(str(tmp_path)), source, settings))
    assert brief(refs)[-1] == (str(tmp_path), "names_images", "names_images")
    assert [ref.count for ref in refs if ref.status == "names_images"] == [2]
    summary = Summary()
    for ref in refs:
        summary.add(ReferenceBatch.of([ref]), ImageSplitter(0, SplitSettings(), SplitCutoffs()))
    assert (summary.naming_files, summary.listed, summary.references) == (2, 5, 2)
