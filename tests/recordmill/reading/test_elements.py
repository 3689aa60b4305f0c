import pytest

from recordmill.reading.dataset import SplitInfo
from recordmill.reading.load import choose_elements, finish_function, parse_function
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature, encode_example

LABELS = {"cat": 1, "dog": 2}
MANY = (
    Feature("image", "bytes", "encoded", ""),
    Feature("labels", "int64", "labels", "", many=True),
    Feature("boxes", "float", "boxes", "", many=True),
)


def split(features):
    return SplitInfo("folder", "train", tuple(features), LABELS, {}, (), "none", False)


def convention(name):
    return split(load_convention(name).example_features)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("default", ("image/encoded", "image/class/label")),
        ("tutorial", ("image_raw", "label")),
        ("inception", ("image/encoded", "image/class/label")),
        ("tfds", ("image", "label")),
        ("image_tfrecord_builder", ("train/image", "train/label")),
    ],
)
def test_pairs_are_image_and_label_in_every_convention(name, keys):
    layout = choose_elements(convention(name), None, decode=True)
    assert (layout.shape, layout.keys, layout.image) == ("pair", keys, keys[0])
    assert choose_elements(convention(name), None, decode=False).image is None


def test_without_an_image_or_a_label_there_are_dicts():
    layout = choose_elements(
        split([Feature("b", "int64", "b", ""), Feature("a", "float", "a", "")]), None, decode=True
    )
    assert (layout.shape, layout.keys, layout.image) == ("dict", ("b", "a"), None)
    assert choose_elements(split(MANY[:1]), None, decode=True).shape == "dict"


def test_features_are_chosen_by_key():
    layout = choose_elements(convention("tutorial"), ("label", "height"), decode=True)
    assert (layout.shape, layout.keys, layout.image) == ("tuple", ("label", "height"), None)
    assert choose_elements(convention("tutorial"), "label", decode=True).keys == ("label",)
    assert choose_elements(convention("tutorial"), "all", decode=True).shape == "dict"


@pytest.mark.parametrize(
    ("wrong", "named"), [(("label", "depht"), "'depht'"), ("depht", "'depht'"), ((), "''")]
)
def test_an_unknown_feature_is_one_sentence(wrong, named):
    with pytest.raises(
        LoadError,
        match=f"has no feature {named}: choose from height, width, depth, label, image_raw$",
    ):
        choose_elements(convention("tutorial"), wrong, decode=True)


def parsed(tf, info, records, features=None, decode=True):
    layout = choose_elements(info, features, decode)
    records = [encode_example(info.features, record) for record in records]
    return parse_function(info, layout)(tf.constant(records))


def test_only_the_needed_features_are_parsed(tf):
    values = parsed(tf, convention("default"), [{"encoded": b"x", "label": 2}])
    assert {key: value.numpy().tolist() for key, value in values.items()} == {
        "image/encoded": [b"x"],
        "image/class/label": [2],
    }


def test_class_names_become_ids_and_unknown_ones_minus_one(tf):
    records = [{"encoded": b"x", "label_text": name} for name in (b"dog", b"cat", b"emu")]
    assert parsed(tf, convention("image_tfrecord_builder"), records)[
        "train/label"
    ].numpy().tolist() == [2, 1, -1]
    alone = parsed(tf, convention("image_tfrecord_builder"), records, "all")
    assert alone["train/label"].numpy().tolist() == [b"dog", b"cat", b"emu"]


def test_many_values_are_ragged(tf):
    records = [
        {"encoded": b"", "label": [1], "boxes": [0.5, 0.25]},
        {"encoded": b"", "label": [], "boxes": []},
    ]
    assert parsed(tf, split(MANY), records, "all")["boxes"].to_list() == [[0.5, 0.25], []]


@pytest.mark.parametrize(
    ("ids", "hot"), [([1], [0, 1, 0]), ([2, 1, 2], [0, 1, 1]), ([], [0, 0, 0])]
)
def test_many_labels_of_an_image_become_multi_hot(tf, ids, hot):
    info = split(MANY)
    layout = choose_elements(info, None, decode=True)
    values = {
        "image": tf.io.encode_png(tf.zeros((2, 3, 3), tf.uint8)),
        "labels": tf.constant(ids, tf.int64),
    }
    image, label = finish_function(info, layout)(values)
    assert image.shape == (2, 3, 3)
    assert label.numpy().tolist() == hot
    assert label.dtype == tf.float32
    assert not layout.is_ragged


def test_many_labels_stay_as_they_are_in_dicts(tf):
    info = split(MANY)
    layout = choose_elements(info, "all", decode=True)
    assert layout.is_ragged
    values = {
        "image": tf.io.encode_png(tf.zeros((2, 3, 3), tf.uint8)),
        "labels": tf.constant([2], tf.int64),
        "boxes": tf.constant([0.5]),
    }
    element = finish_function(info, layout)(values)
    assert list(element) == ["image", "labels", "boxes"]
    assert element["labels"].numpy().tolist() == [2]
