from pathlib import Path

import pytest

from recordmill.annotations.kinds import RECORD_FIELDS
from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.configuration.idle_settings import find_idle

CONFIGS = sorted(path.name for path in (Path(__file__).parents[3] / "configs").glob("*.yaml"))

NEVER = "images.reencode=never"
TABLE = "source={kind: table, columns: {a: int}}"
ROWS = (TABLE, "convention=plain")
FILES = (
    "decode=none",
    "features={feature: file_sha256}",
    "convention={features: {a: {field: feature, type: bytes}}}",
)
KEYS = ("decode=none", "convention={features: {a: {field: filename, type: bytes}}}")
IDX = "source.kind=idx"
MANIFEST = "source={kind: manifest, columns: {uri: a}}"
SEVERAL = "convention={features: {a: {field: labels, type: int64, shape: [null]}}}"
UNLABELED = (
    "source={kind: class_folders, class_from: none}",
    "source={kind: archives, class_from: none}",
    "source={kind: archives, labels: beside, label_part: ''}",
    "source={kind: arrays, labels: {}}",
    "source={kind: idx, labels: ''}",
    "source={kind: fixed_records, preset: '', labels: [], height: 2, width: 2, channels: 1}",
    "source={kind: manifest, columns: {uri: a}}",
    "source={kind: imagefolder}",
)


def idle(*overrides, config=None):
    found = find_idle(load_settings(config, overrides).settings)
    return [str(each) for each in found if each.is_refused]


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            ("source.kind=image_masks", "convention=deeplab", "masks=png"),
            "masks has no effect, since semantic masks are stored without it, and the source gives "
            "no others: remove it",
        ),
        (
            ("images.store=png", "images.quality=50"),
            "images.quality has no effect, since images are stored as png: remove it",
        ),
        (
            ("images.store=raw", "images.subsampling='4:4:4'"),
            "images.subsampling has no effect, since images are stored as raw: remove it",
        ),
        (
            ("convention=raw_pixels", "images.quality=50"),
            "images.quality has no effect, since images are stored as raw: remove it",
        ),
        (
            (NEVER, "images.quality=50"),
            "images.quality has no effect, since images.reencode is never: remove it",
        ),
        (
            (NEVER, "images.subsampling='4:2:0'"),
            "images.subsampling has no effect, since images.reencode is never: remove it",
        ),
        (
            (NEVER, "images.background=[0, 0, 0]"),
            "images.background has no effect, since images.reencode is never: remove it",
        ),
        (
            ("images.formats=[JPEG]", "images.background=[0, 0, 0]"),
            "images.background has no effect, since no image is transparent, and none is padded: "
            "remove it",
        ),
        (
            (IDX, "images.resize.exact=[8, 8]", "images.background=[0, 0, 0]"),
            "images.background has no effect, since no image is transparent, and none is padded: "
            "remove it",
        ),
        (
            ("images.resize={longest: 64, fit: pad}",),
            "images.resize.fit has no effect, since images.resize.exact is not set: remove it",
        ),
        (
            ("images.check=header", NEVER, "images.moments=true"),
            "images.moments has no effect, since images.check is header: remove it",
        ),
        (
            (IDX, "images.formats=[PNG]"),
            "images.formats has no effect, since the source gives pixels: remove it",
        ),
        (
            (IDX, "images.metadata=strip"),
            "images.metadata has no effect, since the source gives pixels: remove it",
        ),
        (
            ("images.quality=80", "images.metadata=strip"),
            "images.metadata has no effect, since every image is encoded again, without metadata: "
            "remove it",
        ),
        (
            ("images.store=raw", "images.metadata=orientation"),
            "images.metadata has no effect, since every image is encoded again, without metadata: "
            "remove it",
        ),
        (
            (IDX, NEVER),
            "images.reencode has no effect, since the source gives pixels, which are always "
            "encoded: remove it",
        ),
        (
            (*KEYS, "images.quality=50"),
            "images.quality has no effect, since no image is decoded: remove it",
        ),
        (
            (*KEYS, "images.resize.longest=50"),
            "images.resize has no effect, since no image is decoded: remove it",
        ),
        (
            (*KEYS, "images.reencode=always"),
            "images.reencode has no effect, since no image is decoded: remove it",
        ),
        (
            (*ROWS, "images.max_pixels=50"),
            "images.max_pixels has no effect, since no image is decoded: remove it",
        ),
        (
            ("splits.fractions={all: 1}", "images.near_duplicates=together"),
            "images.near_duplicates has no effect, since there is one split, and every image is in "
            "it: remove it",
        ),
        (
            (*KEYS, "images.near_duplicates=together"),
            "images.near_duplicates has no effect, since no image is decoded: remove it",
        ),
        (
            ("boxes.invalid=reject",),
            "boxes.invalid has no effect, since the source gives no boxes: remove it",
        ),
        (
            ("max_rejected.boxes.count=3",),
            "max_rejected.boxes has no effect, since the source gives no boxes: remove it",
        ),
        (
            ("source={kind: yolo, task: obb}", "convention=tf_object_detection", "masks=png"),
            "masks has no effect, since the source gives no masks: remove it",
        ),
        (
            (MANIFEST, "boxes.drawn_on=stored"),
            "boxes.drawn_on has no effect, since the source gives no boxes: remove it",
        ),
        (
            (*KEYS, "labels.offset=1"),
            "labels.offset has no effect, since the convention (the user's own) stores no class "
            "ids: remove it",
        ),
        (
            ("splits.from_folders={train: train}", "splits.group='(?P<group>a)'"),
            "splits.group has no effect, since the split of every image is given: remove it",
        ),
        (
            ("shards={count: 2, size: 1MB}",),
            "shards.size has no effect, since shards.count says how many files there are: "
            "remove it",
        ),
        (
            (*ROWS, "features={x: file_sha256}"),
            "features has no effect, since the source holds neither images nor files: remove it",
        ),
        (
            ("source={kind: archives, label_part: txt}",),
            "source.label_part has no effect, since source.labels is folders: remove it",
        ),
        (
            ("source={kind: archives, labels: beside, class_from: path}",),
            "source.class_from has no effect, since source.labels is `beside`: remove it",
        ),
        (
            ("source={kind: imagefolder, class_names: [a]}",),
            "source.class_names has no effect, since the source gives no labels: remove it",
        ),
        (
            ("source={kind: manifest, columns: {uri: a}, boxes_unit: fraction}",),
            "source.boxes_unit has no effect, since no column of boxes is named: remove it",
        ),
        (
            ("source={kind: manifest, columns: {uri: a}, unlabeled: keep}",),
            "source.unlabeled has no effect, since no column of classes is named: remove it",
        ),
        (
            ("source={kind: manifest, preset: vertex, unlabeled: keep}",),
            "source.unlabeled has no effect, since source.preset vertex knows it: remove it",
        ),
        (
            ("source={kind: manifest, columns: {uri: a}, format: jsonl, delimiter: ;}",),
            "source.delimiter has no effect, since source.format is jsonl: remove it",
        ),
        (
            (
                "source={kind: table, columns: {a: int}, format: parquet, encoding: latin-1}",
                "convention=plain",
            ),
            "source.encoding has no effect, since source.format is parquet: remove it",
        ),
        (
            ("source={kind: tfrecords, split_feature: a, split: '(?P<split>b)'}",),
            "source.split has no effect, since source.split_feature gives the split: remove it",
        ),
        *[
            (
                (source, f"labels={{{written}}}"),
                f"labels.{key} has no effect, since the source gives no labels: remove it",
            )
            for source in UNLABELED
            for key, written in (
                ("classes", "classes: [a]"),
                ("ids", "ids: integers"),
                ("offset", "offset: 3"),
            )
        ],
        (
            ("source.class_from=none", "max_rejected.lost_classes=3"),
            "max_rejected.lost_classes has no effect, since the source gives no labels: remove it",
        ),
        (
            ("max_rejected.labels.count=3",),
            "max_rejected.labels has no effect, since no image has several labels: remove it",
        ),
        (
            (
                "source={kind: manifest, columns: {uri: a, group: b, split: c}}",
                "splits.from_source={x: train}",
            ),
            "source.columns.group has no effect, since the split of every image is given: "
            "remove it",
        ),
        (
            (
                "source={kind: table, columns: {a: int}, group: b}",
                "convention=plain",
                "splits.from_folders={x: train}",
            ),
            "source.group has no effect, since the split of every row is given: remove it",
        ),
        (
            ("splits={fractions: {train: 1}, stratify: true}",),
            "splits.stratify has no effect, since there is one split, and every image is in it: "
            "remove it",
        ),
        (
            ("splits.fractions={train: 1}", "duplicates=together"),
            "duplicates has no effect, since there is one split, and every image is in it: "
            "remove it",
        ),
        (
            ("source={kind: manifest, columns: {uri: a, group: b}}", "splits.fractions={train: 1}"),
            "source.columns.group has no effect, since there is one split, and every image is in "
            "it: remove it",
        ),
        (
            (IDX, "images.check=header"),
            "images.check has no effect, since the source gives pixels: remove it",
        ),
        (
            ("source={kind: manifest, columns: {uri: a}, format: jsonl, blanks: keep}",),
            "source.blanks has no effect, since source.format is jsonl: remove it",
        ),
        (
            (
                "source={kind: table, columns: {a: int}, format: parquet, blanks: skip}",
                "convention=plain",
            ),
            "source.blanks has no effect, since source.format is parquet: remove it",
        ),
        (
            ("source={kind: manifest, columns: {bytes: a}, root: b}",),
            "source.root has no effect, since no column names images: remove it",
        ),
        (
            ("source={kind: manifest, columns: {uri: a}, class_names: [b]}",),
            "source.class_names has no effect, since the source gives no labels: remove it",
        ),
        (
            ("source={kind: manifest, columns: {uri: a, label: b}, separator: ;}",),
            "source.separator has no effect, since no column has several values: remove it",
        ),
        (
            ("source={kind: archives, labels: beside, label_part: '', class_names: [a]}",),
            "source.class_names has no effect, since the source gives no labels: remove it",
        ),
        *[
            (
                (f"source={{kind: {kind}, class_names: 3}}",),
                "source.class_names has no effect, since the source gives no labels: remove it",
            )
            for kind in ("idx, labels: ''", "arrays, labels: {}")
        ],
    ],
)
def test_a_setting_that_cannot_act(overrides, sentence):
    assert idle(*overrides) == [sentence]
    *others, last = overrides
    if last.startswith(("images.", "boxes.", "labels.", "splits.group")):
        assert idle(*others) == []


def test_each_is_named_once():
    assert [
        line.split(" ", 1)[0]
        for line in idle(NEVER, "images.quality=9", "images.background=[0, 0, 0]")
    ] == [
        "images.quality",
        "images.background",
    ]


@pytest.mark.parametrize(
    "overrides",
    [
        ("images.quality=50",),
        (NEVER, "images.check=header"),
        (NEVER, "images.background=[0, 0, 0]", "images.near_duplicates=true"),
        (NEVER, "images.background=[0, 0, 0]", "features={a: mean_std}"),
        (
            "images.formats=[JPEG]",
            "images={background: [0, 0, 0], resize: {exact: [8, 8], fit: pad}}",
        ),
        ("images.resize={exact: [8, 8], fit: pad}",),
        ("images.check=header", "images.reencode=always"),
        # Examples may hold raw pixels, which are encoded.
        (
            "source.kind=tfrecords",
            NEVER,
            "images.quality=50",
        ),
        (IDX, "images.quality=50"),
        (IDX, "images.reencode=always"),
        (*KEYS, "images.max_bytes=50"),
        (*ROWS, NEVER),
        (
            "source.kind=voc",
            "convention=default",
            "boxes={invalid: drop, drawn_on: stored}",
            "max_rejected.boxes.count=3",
        ),
        ("source={kind: manifest, preset: automl}", "boxes.invalid=drop"),
        ("source.kind=image_masks", "convention=deeplab", "boxes.drawn_on=stored"),
        ("labels.offset=0",),
        *[
            (
                f"source={source}",
                SEVERAL,
                "labels.classes=[a]",
                "max_rejected={lost_classes: 2, labels: {count: 3}}",
            )
            for source in (
                "{kind: manifest, preset: automl}",
                "{kind: imagefolder, label: b, labels: a}",
            )
        ],
        (
            "source={kind: manifest, columns: {uri: a, objects: b}}",
            "convention=default",
            "labels.classes=[a]",
        ),
        (
            "source={kind: manifest, columns: {uri: a, group: b}}",
            "splits.fractions={train: 0.5}",
            "splits.stratify=true",
        ),
        ("source={kind: manifest, columns: {uri: a, labels: b}, separator: ;}", SEVERAL),
        ("labels={classes: [a], catch_all: a}",),
        ("splits.group='(?P<group>a)'",),
        ("shards.count=2",),
        ("shards.size=1MB",),
        ("source={kind: manifest, columns: {uri: a}, delimiter: ;}",),
        ("analyze=true",),
        ("compression=none",),
    ],
)
def test_settings_with_an_effect_or_a_default_value_are_accepted(overrides):
    assert idle(*overrides) == []


@pytest.mark.parametrize("config", CONFIGS)
def test_shipped_configurations_act(config):
    assert idle(config=config) == []


def test_rows_of_tfrecords_have_no_images_and_their_shipped_configuration_is_fine():
    vectors = ("source.convention=feature_vector", "convention=feature_vector")
    assert idle(*vectors, config="tfrecords.yaml") == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("{kind: manifest, columns: {uri: a, split: b}}", "columns.split"),
        ("{kind: table, columns: {a: int}, split: b}", "split"),
        ("{kind: archives, split: '(?P<split>a)'}", "split"),
        ("{kind: tfrecords, split_feature: a}", "split_feature"),
    ],
)
def test_words_for_splits_that_nothing_asks_for(source, name):
    def notes(*more):
        found = find_idle(load_settings(None, [f"source={source}", *more]).settings)
        return [str(each) for each in found if not each.is_refused]

    plain = ("convention=plain",) if "table" in source else ()
    assert notes(*plain) == [f"source.{name} is not used, since splits.from_source is not set"]
    assert notes(*plain, "splits.from_source={b: train}") == []
    assert notes(*plain, "splits.from_folders={b: train}") == notes(*plain)


@pytest.mark.parametrize("config", CONFIGS)
def test_shipped_configurations_use_their_words(config):
    assert find_idle(load_settings(config, []).settings) == []


def test_class_ids_are_the_fields_of_ids():
    ids = {name for name, each in RECORD_FIELDS.items() if "class id" in each.meaning}
    assert ids == {"label", "labels", "box_labels"}
