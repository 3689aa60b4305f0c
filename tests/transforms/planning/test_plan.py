import hashlib
import json
import zlib
from dataclasses import replace

import pytest
from make_settings import make_settings

from recordmill.annotations.keypoints import KeyPoints
from recordmill.imaging import ImageSettings
from recordmill.pipeline.configuration.resolve_settings import make_recipe
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.digests import HASH_RANGE, hash_key
from recordmill.schemas.features import feature_schema
from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.label_map import LabelMap, LabelSettings
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import (
    BoxSettings,
    ExampleLayout,
    KeepSettings,
    ShardSettings,
    SplitSettings,
)
from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.schemas.settings.recipe import list_settings
from recordmill.schemas.settings.rejection_limits import RejectionLimits
from recordmill.transforms.inputs.sources.coco import Coco
from recordmill.transforms.inputs.sources.filename_labels import FilenameLabels
from recordmill.transforms.inputs.sources.voc import Voc
from recordmill.transforms.planning import plan as plan_module
from recordmill.transforms.planning import summary
from recordmill.transforms.planning.plan import OUTSIDE_PLAN_ID, make_plan
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import Summary, range_of

MB = 10**6
IMAGES = [
    ImageRef(f"{label}/{n}.jpg", f"/x/{label}/{n}.jpg", MB, label=label)
    for label in ("b", "a")
    for n in range(50)
]
BASE = make_settings()


def plan_of(refs=IMAGES, settings=BASE, selection=None, growth=1.0):
    selection = selection or SplitCutoffs()
    summary = Summary()
    for ref in refs:
        summary.add(
            ReferenceBatch.of([ref]), ImageSplitter(settings.seed, settings.splits, selection)
        )
    return make_plan(summary, selection, settings, make_recipe(settings), growth)


def skeleton_of(*names, convention="tf_object_detection"):
    """The skeleton of a dataset with images that have key points of these names."""
    settings = replace(BASE, source=Coco(), convention=convention)
    refs = [
        ClassNames("a.json", (), skeleton=(("b", "a"), ("b", "c"))),
        *(
            ref.replace(annotations=((KeyPoints.kind, KeyPoints([*each], []).pack()),))
            for ref, each in zip(IMAGES, names, strict=False)
        ),
        ClassNames("b.json", (), skeleton=(("c", "a"), ("b", "c"))),
    ]
    return plan_of(refs, settings).skeleton


def test_a_skeleton_is_that_of_all_files_in_the_order_of_the_points():
    found = skeleton_of("cab", "cab")
    assert found == {"c": ("a",), "a": (), "b": ("a", "c")}
    assert [*found] == ["c", "a", "b"]
    found = skeleton_of("cab", "abc")
    assert found == {"a": (), "b": ("a", "c"), "c": ("a",)}
    assert [*found] == ["a", "b", "c"]
    assert skeleton_of("cab", convention="default") == {}


def splits(**fractions):
    return replace(BASE, splits=SplitSettings(fractions=fractions))


def test_a_plan_has_exact_shards_and_labels():
    plan = plan_of(settings=replace(BASE, shards=ShardSettings(count=3)))
    assert (plan.problem, plan.notes) == (None, ())
    assert plan.label_map == LabelMap({"a": 0, "b": 1})
    assert {name: len(starts) for name, starts in plan.starts.items()} == {"train": 3, "test": 3}
    assert plan.shard_count == 6
    assert plan.summary.references == 100
    assert plan.summary.sample == []
    assert all(not split.histogram.bins for split in plan.summary.splits.values())
    splitter = ImageSplitter(0, BASE.splits, plan.selection)
    filled = set()
    for ref in IMAGES:
        hashes, split, _ = splitter.place(ref)
        filled.add((split, range_of(plan.starts[split], hashes.order)))
    assert filled == {(split, index) for split in ("train", "test") for index in range(3)}


@pytest.mark.parametrize(
    ("size", "growth", "expected"),
    [("10MB", 1, 10), ("10MB", 0.5, 5), ("15MB", 1, 7), ("1GB", 1, 1)],
)
def test_the_size_aimed_at_decides_the_number_of_shards(size, growth, expected):
    settings = replace(splits(train=1.0), shards=ShardSettings(size=size))
    plan = plan_of(settings=settings, growth=growth)
    assert len(plan.starts["train"]) == expected
    assert plan.estimated_bytes == {"train": 100 * MB * growth}


def test_fixed_cuts_do_not_depend_on_the_estimate():
    settings = replace(splits(train=1.0), shards=ShardSettings(size="10MB", cuts="fixed"))
    assert {
        len(plan_of(settings=settings, growth=growth).starts["train"]) for growth in (0.1, 1.0, 9.0)
    } == {16}


def test_a_count_above_the_number_of_images_is_lowered_and_said():
    plan = plan_of(IMAGES[48:52], replace(splits(train=1.0), shards=ShardSettings(count=9)))
    assert len(plan.starts["train"]) == 4
    assert plan.notes == ("split train is written in 4 shards, not 9: the others would be empty",)


def test_more_shards_than_the_histogram_has_bins_are_lowered_and_said(monkeypatch):
    monkeypatch.setattr(summary, "MAX_BINS", 8)
    plan = plan_of(settings=replace(splits(train=1.0), shards=ShardSettings(count=9)))
    count = len(plan.starts["train"])
    assert 4 < count <= 8
    assert len(plan.notes) == 1


def test_a_shard_of_too_many_references_is_refused(monkeypatch):
    monkeypatch.setattr(plan_module, "MOST_PER_SHARD", 30)
    plan = plan_of(settings=replace(splits(train=1.0), shards=ShardSettings(count=3)))
    assert plan.problem == "split train would put 100 images into 3 files: raise shards.count"


@pytest.mark.parametrize(
    ("convention", "offset", "first"), [("default", None, 0), ("default", 1, 1), ("tutorial", 7, 7)]
)
def test_the_offset_is_the_users_or_the_conventions(convention, offset, first):
    settings = replace(BASE, convention=convention, labels=LabelSettings(offset=offset))
    assert load_convention(convention).label_offset == 0
    assert plan_of(settings=settings).label_map.ids == {"a": first, "b": first + 1}


FATAL = ImageRef("d", "/x/d").notice("fatal", "link_loop", "it loops")
IGNORED = ImageRef(".h", "/x/.h").notice("ignored", "hidden")
REJECTED = ImageRef("r", "/x/r").notice("rejected", "no_class")
FROM_FOLDERS = replace(BASE, splits=SplitSettings(from_folders={"t": "train", "v": "validation"}))
STRATIFIED = replace(
    BASE, splits=SplitSettings(fractions={"train": 0.9, "test": 0.1}, stratify=True)
)
ALL_IN_TRAIN = SplitCutoffs(
    class_bounds={"a": [HASH_RANGE, HASH_RANGE], "b": [HASH_RANGE, HASH_RANGE]}
)


@pytest.mark.parametrize(
    ("refs", "settings", "selection", "sentence"),
    [
        ([], BASE, None, "no images were found in the input"),
        (
            [IGNORED],
            BASE,
            None,
            "no images were found in the input: everything found (1) is ignored (1 hidden)",
        ),
        (
            [replace(IGNORED, reason="not_included")] * 2,
            BASE,
            None,
            "no images were found in the input: everything found (2) is ignored (2 not_included)",
        ),
        (
            [replace(IGNORED, reason="without_annotation")] * 2,
            replace(BASE, source=Voc()),
            None,
            "no images were found in the input: everything found (2) is ignored (2 "
            "without_annotation); "
            "the source reads *.xml",
        ),
        ([FATAL], BASE, None, "/x/d: it loops"),
        ([*IMAGES, FATAL, replace(FATAL, uri="/x/c")], BASE, None, "/x/c: it loops (and 1 more)"),
        (
            [replace(FATAL, uri=f"/x/{n:02}") for n in range(99)],
            BASE,
            None,
            "/x/00: it loops (and 98 more)",
        ),
        (
            IMAGES,
            BASE,
            SplitCutoffs(cutoff=0),
            "all 100 images are left out: raise limit or the fractions",
        ),
        (
            [
                *(replace(ref, split="train") for ref in IMAGES),
                ImageRef("val.bin", "/x/val.bin").notice(
                    "rejected", "wrong_length", "5 bytes over"
                ),
            ],
            FROM_FOLDERS,
            None,
            "no image was found for split validation, and 1 rejected, such as val.bin (5 bytes "
            "over): "
            "correct that, or leave the split out with --set 'splits.from_folders={t: train}'",
        ),
        (
            IMAGES,
            STRATIFIED,
            ALL_IN_TRAIN,
            "there are too few images (100) for the splits train, test: test would be empty: to "
            "have one split, add --set 'splits.fractions={train: 1.0}'",
        ),
        (
            IMAGES[:2],
            splits(train=0.8, validation=0.1, test=0.1),
            None,
            "there are too few images (2) for the splits train, validation, test: ",
        ),
        (
            [replace(ref, group="one") for ref in IMAGES],
            replace(BASE, splits=SplitSettings(group="(?P<group>x)")),
            None,
            "there are too few images (100) for the splits train, test: ",
        ),
    ],
)
def test_a_listing_that_makes_no_dataset_fails_with_a_sentence(refs, settings, selection, sentence):
    plan = plan_of(refs, settings, selection)
    assert plan.starts == {}
    if sentence.endswith(": "):
        assert plan.problem.startswith(sentence)
        assert plan.problem.endswith(
            " would be empty: to have one split, add --set 'splits.fractions={train: 1.0}'"
        )
    else:
        assert plan.problem == sentence


def test_a_given_split_without_images_is_a_note_and_has_no_shards():
    plan = plan_of([replace(ref, split="validation") for ref in IMAGES], FROM_FOLDERS)
    assert (plan.problem, list(plan.starts)) == (None, ["validation"])
    assert plan.notes == ("no image was found for split train, which splits.from_folders names",)


def test_split_words_as_classes_are_fine_where_the_user_says_so():
    refs = [ImageRef(f"test/{n}", "", label="test") for n in range(20)]
    listed = replace(BASE, labels=LabelSettings(classes=("test",)))
    assert plan_of(refs, listed).problem is None
    assert plan_of([*refs, ImageRef("cat/1", "", label="cat")]).problem is None


def test_an_empty_split_is_given_the_nearest_images_and_a_note_says_so():
    refs = IMAGES[47:53]
    settings = splits(train=0.999999, test=0.000001)
    plan = plan_of(refs, settings)
    assert plan.notes == ("split test would have been empty: it was given the nearest images",)
    assert plan.starts["test"] == [0]
    splitter = ImageSplitter(0, settings.splits, plan.selection)
    places = [splitter.place(ref)[1] for ref in refs]
    assert sorted(places) == ["test"] + ["train"] * 5
    assert places[max(range(6), key=lambda n: hash_key(0, refs[n].key).split)] == "test"


def test_rejected_things_alone_still_get_a_shard_to_be_listed_by():
    plan = plan_of([REJECTED])
    assert (plan.problem, plan.starts) == (None, {"train": [0]})


@pytest.mark.parametrize(
    ("kinds", "note"),
    [
        ({"masks": 1}, "not stored: masks (1)"),
        ({"masks": 3, "key points": 1}, "not stored: key points (1), masks (3)"),
    ],
)
def test_annotations_that_are_not_stored_are_noted(kinds, note):
    notices = [
        IMAGES[0].notice("not_stored", kind, count=1)
        for kind, count in kinds.items()
        for _ in range(count)
    ]
    boxes = replace(BASE, convention="tf_object_detection")
    assert note in plan_of([*IMAGES, *notices], boxes).notes
    assert plan_of([*IMAGES, *notices], boxes).plan_id == plan_of(IMAGES, boxes).plan_id


def test_warnings_are_reported():
    warning = ImageRef("e", "/x/e").notice("warning", "empty_folder", "the folder is empty")
    assert plan_of([*IMAGES, warning]).notes == ("e: the folder is empty",)


CHANGED = {
    "name": "other",
    "include": ("*.jpg",),
    "ignore": ("*.png",),
    "images": ImageSettings(quality=90),
    "features": {"feature": FeatureFunction(function="mean_std")},
    "boxes": BoxSettings(invalid="drop"),
    "labels": LabelSettings(offset=1),
    "duplicates": "drop",
    "splits": SplitSettings(fractions={"train": 0.8, "test": 0.2}),
    "shards": ShardSettings(count=2),
    "convention": "tutorial",
    "compression": "gzip",
    "index_files": True,
    "seed": 1,
    "limit": 50,
    "limit_per_class": 5,
    "keep": KeepSettings(min_side=5),
    "source": FilenameLabels(),
}


@pytest.mark.parametrize("field", CHANGED)
def test_the_plan_id_changes_with_every_setting_that_decides_bytes(field):
    assert plan_of(settings=replace(BASE, **{field: CHANGED[field]})).plan_id != plan_of().plan_id


def test_every_other_setting_is_among_those():
    # `decode: none` goes with conventions without images; the recipe holds it as it holds the rest.
    # In place of `exclude` and `corrections` it has digests of what the files name. Masks need a
    # source of them.
    others = {"corrections", "decode", "exclude", "masks", "masks_required", *OUTSIDE_PLAN_ID}
    assert {*CHANGED, *others} == set(list_settings(BASE))


def test_the_plan_id_does_not_change_with_limits_on_rejects():
    tolerant = replace(BASE, max_rejected=RejectionLimits(share=1.0, count=10**6, lost_classes=5))
    assert plan_of(settings=tolerant).plan_id == plan_of().plan_id


def test_the_plan_id_does_not_change_with_the_report():
    assert plan_of(settings=replace(BASE, report=False)).plan_id == plan_of().plan_id


def test_the_plan_id_does_not_change_with_root_time_or_order_of_the_listing():
    moved = [replace(ref, uri=f"/elsewhere/{ref.key}", version="later") for ref in reversed(IMAGES)]
    assert plan_of(moved).plan_id == plan_of().plan_id


def test_the_plan_id_does_not_change_with_ignored_things():
    assert plan_of([*IMAGES, IGNORED]).plan_id == plan_of().plan_id


@pytest.mark.parametrize(
    "refs",
    [
        IMAGES[1:],
        [*IMAGES, REJECTED],
        [replace(IMAGES[0], size=5), *IMAGES[1:]],
        [replace(IMAGES[0], label="c"), *IMAGES[1:]],
        [replace(IMAGES[0], split="test"), *IMAGES[1:]],
        [replace(IMAGES[0], key="a/z.jpg"), *IMAGES[1:]],
    ],
    ids=["removed", "rejected", "size", "label", "split", "key"],
)
def test_the_plan_id_changes_with_what_is_listed(refs):
    assert plan_of(refs).plan_id != plan_of().plan_id


def test_a_dataset_with_moments_can_be_analyzed_later_without_becoming_another():
    with_moments = plan_of(settings=make_settings(images=ImageSettings(moments=True)))
    assert (
        plan_of(settings=make_settings(analyze=True)).plan_id
        == with_moments.plan_id
        != plan_of().plan_id
    )


def test_the_order_of_splits_is_part_of_the_plan():
    # The same fractions in another order are other ranges of hashes.
    assert (
        plan_of(settings=splits(train=0.5, test=0.5)).plan_id
        != plan_of(settings=splits(test=0.5, train=0.5)).plan_id
    )


def test_the_plan_id_changes_with_versions(monkeypatch):
    before = plan_of().plan_id
    monkeypatch.setattr(plan_module, "imaging_versions", lambda formats: {"pillow": "0"})
    with_other_pillow = plan_of().plan_id
    monkeypatch.setattr(plan_module, "PLAN_VERSION", 0)
    assert len({before, with_other_pillow, plan_of().plan_id}) == 3


def test_a_trial_of_a_few_images_has_the_full_runs_class_ids():
    refs = [
        ImageRef(f"{n:02}/{m}.jpg", f"/x/{n}/{m}.jpg", MB, label=f"{n:02}")
        for n in range(50)
        for m in range(2)
    ]
    take = sorted(hash_key(0, ref.key).take for ref in refs)[20]
    trial = plan_of(refs, replace(BASE, limit=20), SplitCutoffs(cutoff=take))
    assert (trial.summary.references, trial.summary.left_out) == (20, {"limit": 80})
    assert trial.label_map == plan_of(refs).label_map == LabelMap({f"{n:02}": n for n in range(50)})


def test_classes_that_the_fractions_leave_out_have_ids_too():
    refs = [ImageRef(f"{n:02}/a.jpg", f"/x/{n}/a.jpg", MB, label=f"{n:02}") for n in range(50)]
    plan = plan_of(refs, splits(train=0.3))
    assert 0 < plan.summary.references < 50
    assert plan.label_map.ids == {f"{n:02}": n for n in range(50)}


CUTS = [
    ({}, 1.0, 1.0, True),
    ({"size": "10MB"}, 1.0, 1.0, True),
    ({"size": "10MB"}, 1.0, 2.0, False),
    ({"count": 3}, 1.0, 2.0, True),
]


@pytest.mark.parametrize(
    ("shards", "one", "other", "same"), CUTS, ids=["whole", "same", "grown", "counted"]
)
def test_the_plan_id_changes_with_where_shards_are_cut(shards, one, other, same):
    # A growth that is estimated otherwise, as by another library, must not mix shards of two cuts.
    settings = replace(splits(train=1.0), shards=ShardSettings(**shards))
    first, second = plan_of(settings=settings, growth=one), plan_of(settings=settings, growth=other)
    assert (first.starts == second.starts) == same
    assert (first.recipe["cuts"] == second.recipe["cuts"]) == same
    assert (first.plan_id == second.plan_id) == same


def test_the_cuts_are_a_digest_of_the_shards_starts():
    plan = plan_of(settings=replace(BASE, shards=ShardSettings(count=3)))
    text = json.dumps(plan.starts, separators=(",", ":"), sort_keys=True)
    assert plan.recipe["cuts"] == hashlib.sha256(text.encode()).hexdigest()


def test_the_recipe_holds_what_a_convention_and_its_files_are():
    settings = replace(BASE, name="pets", labels=LabelSettings(offset=4), compression="gzip")
    plan = plan_of(settings=settings)
    recipe = plan.recipe
    assert recipe["feature_schema"] == to_json(feature_schema(ExampleLayout(settings).features))
    assert recipe["format_names"] == dict(ExampleLayout(settings).convention.format_names)
    names = ExampleLayout(settings).file_name
    assert recipe["file_names"] == [names("train", 0, 1, 1), names("test", 0, 1, 1)]
    assert recipe["label_offset"] == 4
    ids = json.dumps(plan.label_map.ids, separators=(",", ":"), sort_keys=True)
    assert recipe["label_ids"] == hashlib.sha256(ids.encode()).hexdigest()
    assert recipe["split_order"] == ["train", "test"]
    assert json.loads(json.dumps(recipe)) == recipe  # as in the marker it is compared with


def test_zlib_is_a_part_where_it_writes():
    assert "zlib" not in plan_of().recipe["versions"]
    packed = plan_of(settings=replace(BASE, compression="gzip")).recipe["versions"]
    assert packed == {**plan_of().recipe["versions"], "zlib": zlib.ZLIB_RUNTIME_VERSION}


def test_the_recipe_says_what_was_listed_and_with_what():
    recipe = plan_of().recipe
    assert recipe["listing"]["references"] == 100
    assert len(recipe["listing"]["digest"]) == 64
    assert "pillow" in recipe["versions"]
    assert "max_rejected" not in recipe


def test_another_function_for_one_feature_is_another_plan():
    one, other = (
        plan_of(settings=replace(BASE, features={"feature": FeatureFunction(function=name)}))
        for name in ("mean_std", "color_histogram")
    )
    assert one.recipe["features"]["feature"]["function"] == "mean_std"
    assert one.plan_id != other.plan_id
