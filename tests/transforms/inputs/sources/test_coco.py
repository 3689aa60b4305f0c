import json
import math
import os
from dataclasses import replace

import pytest
from carried_annotations import boxes_in

from recordmill.annotations.attributes import Attributes
from recordmill.annotations.boxes import boxes_of
from recordmill.annotations.keypoints import KeyPoints
from recordmill.annotations.masks import Masks
from recordmill.imaging.masks.outline import Polygons
from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.coco_annotations import (
    CocoAnnotations,
    CocoFile,
    OutlinedFile,
    read_coco,
)
from recordmill.transforms.inputs.file_roles import FileRole
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Names
from recordmill.transforms.inputs.outlines import read_segmentation
from recordmill.transforms.inputs.sources.coco import Coco
from recordmill.transforms.inputs.sources.source import list_file
from recordmill.transforms.inputs.unclaimed_files import Unclaimed

PATH = "annotations/instances_train2017.json"


@pytest.fixture
def collection(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "b.jpg").write_bytes(b"bbb")
    (tmp_path / "train" / "a.jpg").write_bytes(b"aa")
    return tmp_path


def refer(folder, data, path=PATH, **settings):
    (folder / path).parent.mkdir(exist_ok=True)
    (folder / path).write_text(
        data if isinstance(data, str) else json.dumps(data), encoding="utf-8"
    )
    return list(
        list_file(Coco(**settings), path, ImageRef(f"pets/{path}", str(folder / path), 7, "1"))
    )


ANNOTATIONS = {
    "images": [
        {"id": 7, "file_name": "b.jpg", "width": 40, "height": 30},
        {"id": 5, "file_name": "a.jpg"},
    ],
    "categories": [{"id": 18, "name": "dog"}, {"id": 17, "name": "cat"}],
    "annotations": [
        {
            "id": 2,
            "image_id": 7,
            "category_id": 17,
            "bbox": [1, 2, 3, 4],
            "iscrowd": 1,
            "area": 11.5,
        },
        {"id": 1, "image_id": 7, "category_id": 18, "bbox": [0, 0, 10, 20.5]},
    ],
}


def test_every_image_has_its_boxes_in_the_order_of_their_ids(collection):
    announced, one, other = refer(collection, ANNOTATIONS)
    assert announced == ClassNames.of(
        ImageRef(f"pets/{PATH}", str(collection / PATH)), {"dog": 18, "cat": 17}
    )
    assert (one.key, other.key) == ("pets/train/a.jpg", "pets/train/b.jpg")
    assert (one.uri, other.uri) == (
        str(collection / "train/a.jpg"),
        str(collection / "train/b.jpg"),
    )
    assert (one.size, other.size, one.split, other.split) == (2, 3, "train", "train")
    assert one.version == str((collection / "train/a.jpg").stat().st_mtime_ns)
    nothing = boxes_of([], [], values={"is_crowd": [], "area": []}, drawn_on_size=(0, 0))
    assert (one.features, other.features) == ('{"source_id":"5"}', '{"source_id":"7"}')
    assert boxes_in(one) == nothing
    assert boxes_in(other) == boxes_of(
        [(0, 0, 10, 20.5), (1, 2, 4, 6)],
        ["dog", "cat"],
        values={"is_crowd": [0, 1], "area": [205.0, 11.5]},
        drawn_on_size=(40, 30),
    )


def test_whole_paths_are_below_the_input_also_if_that_is_relative(collection, monkeypatch):
    monkeypatch.chdir(collection.parent)
    images = [
        {**image, "file_name": str(collection / "train" / image["file_name"])}
        for image in ANNOTATIONS["images"]
    ]
    (collection / PATH).parent.mkdir(exist_ok=True)
    (collection / PATH).write_text(json.dumps({**ANNOTATIONS, "images": images}), encoding="utf-8")
    _, one, other = list_file(
        Coco(), PATH, ImageRef(f"pets/{PATH}", f"{collection.name}/{PATH}", 7, "1")
    )
    assert (one.key, other.key) == ("pets/train/a.jpg", "pets/train/b.jpg")
    assert (one.status, one.uri) == ("", f"{collection.name}/train/a.jpg")


def test_a_byte_order_mark_is_not_part_of_a_file(collection):
    assert refer(collection, f"\ufeff{json.dumps(ANNOTATIONS)}") == refer(collection, ANNOTATIONS)


TRIANGLE = [1, 2, 4, 2, 4, 6]


def test_an_empty_box_is_counted_instead_of_rejecting_the_file(collection):
    first, other = ANNOTATIONS["annotations"]
    *_, ref = refer(collection, {**ANNOTATIONS, "annotations": [{**first, "bbox": []}, other]})
    found = boxes_in(ref)
    assert found.boxes == [[0, 0, 10, 20.5], [None] * 4]
    assert found.labels == ["dog", "cat"]


ONE = {"id": 3, "image_id": 7, "category_id": 17}


@pytest.mark.parametrize(
    ("more", "box", "shapes"),
    [
        ({"segmentation": [TRIANGLE]}, [1, 2, 4, 6], 1),
        ({"bbox": None, "segmentation": [TRIANGLE, [9, 9, 10, 9, 10, 20]]}, [1, 2, 10, 20], 1),
        ({"bbox": [], "segmentation": [TRIANGLE]}, [1, 2, 4, 6], 1),
        ({"segmentation": [TRIANGLE], "bbox": math.nan}, [1, 2, 4, 6], 1),
        ({"bbox": [math.nan] * 4, "segmentation": [TRIANGLE]}, [1, 2, 4, 6], 1),
        ({"segmentation": TRIANGLE}, [1, 2, 4, 6], 1),
        ({"segmentation": {"size": [30, 40], "counts": [33, 4, 26, 4, 1133]}}, [1, 3, 3, 7], 1),
        ({"segmentation": {"size": [30, 40], "counts": "Q14j06SS1"}}, None, 0),
        ({"segmentation": []}, None, 0),
        ({"segmentation": [[1, 2]]}, None, 0),
        ({"segmentation": [[1, 2, "x", 4]]}, None, 0),
        ({"segmentation": {"size": [1, 1], "counts": [0, 7]}}, None, 0),
        ({"segmentation": [TRIANGLE], "keypoints": [1, 1, 2, 9, 9, 2]}, [1, 2, 4, 6], 1),
        ({"keypoints": [5, 8, 2, 0, 0, 0, 3, 9.5, 1, None, 2, 2]}, [3, 8, 5, 9.5], 1),
        ({"bbox": [], "segmentation": [], "keypoints": [5, 8, 2, 5, 9, 2]}, None, 0),
        ({"keypoints": [5, 8, 2, 6, 9, "?"]}, None, 0),
        ({}, None, 0),
        ({"bbox": [math.nan, 2, 3, 4], "segmentation": [TRIANGLE]}, [None, 2, None, 6], 0),
        ({"bbox": [1, 2, None, 4]}, [1, 2, None, 6], 0),
        ({"bbox": [1, 2, -math.inf, 4]}, [1, 2, None, 6], 0),
    ],
)
def test_the_box_of_an_annotation_without_one_is_that_of_its_outline_or_points(
    collection, more, box, shapes
):
    *_, ref = refer(collection, {**ANNOTATIONS, "annotations": [{**ONE, **more}]})
    found = boxes_in(ref)
    assert found.boxes == [box or [None] * 4]
    assert found.shapes == ({"enclosed": 1} if shapes else {})


@pytest.mark.parametrize(
    ("rotation", "box", "shapes"),
    [
        (0.0, [10, 45, 90, 55], {}),
        (180, [10, 45, 90, 55], {}),
        (90.0, [45, 10, 55, 90], {"enclosed": 1}),
        (-90, [45, 10, 55, 90], {"enclosed": 1}),
        ("450", [45, 10, 55, 90], {"enclosed": 1}),
        (45.0, [18.1802, 18.1802, 81.8198, 81.8198], {"enclosed": 1}),
        (315.0, [18.1802, 18.1802, 81.8198, 81.8198], {"enclosed": 1}),
        (30, [12.8590, 25.6699, 87.1410, 74.3301], {"enclosed": 1}),
        ("left", [10, 45, 90, 55], {}),
        (None, [10, 45, 90, 55], {}),
        (True, [10, 45, 90, 55], {}),
        (math.nan, [None] * 4, {}),
    ],
)
def test_a_rotated_box_of_cvat_is_enclosed(collection, rotation, box, shapes):
    turned = {**ONE, "bbox": [10, 45, 80, 10], "attributes": {"rotation": rotation}}
    *_, ref = refer(collection, {**ANNOTATIONS, "annotations": [turned]})
    found = boxes_in(ref)
    assert found.boxes[0] == pytest.approx(box, abs=1e-4)
    assert found.shapes == shapes
    assert found.values["area"] == [800]


@pytest.mark.parametrize("attributes", [None, [], "rotation", {"occluded": True}])
def test_other_attributes_turn_no_box(collection, attributes):
    still = {**ONE, "bbox": [1, 2, 3, 4], "attributes": attributes}
    *_, ref = refer(collection, {**ANNOTATIONS, "annotations": [still]})
    assert boxes_in(ref).boxes == [[1, 2, 4, 6]]


TWINS = [
    {"id": 0, "name": "cat", "supercategory": "none"},
    {"id": 17, "name": "cat", "supercategory": "cat"},
    {"id": 18, "name": "dog", "supercategory": "cat"},
]


@pytest.mark.parametrize("annotations", [ANNOTATIONS["annotations"], []])
def test_an_unused_category_with_the_name_of_another_is_left_out(collection, annotations):
    announced, warning, *refs = refer(
        collection, {**ANNOTATIONS, "categories": TWINS, "annotations": annotations}
    )
    assert dict(zip(announced.names, announced.numbers, strict=True)) == {"cat": 17, "dog": 18}
    assert (warning.status, warning.detail) == (
        "warning",
        "category 0 is left out: no annotation has it, and category 17 has the same name, 'cat'",
    )
    assert [ref.status for ref in refs] == ["", ""]


def test_a_category_that_is_listed_twice_is_one(collection):
    categories = [*ANNOTATIONS["categories"], ANNOTATIONS["categories"][0]]
    assert refer(collection, {**ANNOTATIONS, "categories": categories}) == refer(
        collection, ANNOTATIONS
    )


@pytest.mark.parametrize(
    ("segmentation", "is_mask"),
    [
        ([], False),
        (None, False),
        ([TRIANGLE], True),
        ({"counts": "a"}, True),
    ],
)
def test_masks_are_counted_as_not_stored(collection, segmentation, is_mask):
    first, other = ANNOTATIONS["annotations"]
    first = {**first, "segmentation": segmentation}
    refs = refer(collection, {**ANNOTATIONS, "annotations": [first, {**other, "keypoints": []}]})
    found = [(ref.reason, ref.count) for ref in refs if ref.status == "not_stored"]
    assert found == [("masks", 1)] * is_mask
    assert [ref for ref in refs if ref.status != "not_stored"] == refer(collection, ANNOTATIONS)


def test_other_keys_of_annotations_are_counted_as_not_stored(collection):
    first, other = ANNOTATIONS["annotations"]
    more = {"score": 0.5, "ignore": 1, "attributes": {"tags": ["red"]}, "num_keypoints": 3}
    less = {"score": 0, "ignore": 0, "attributes": {"tags": [], "rotation": 0.0}}
    refs = refer(collection, {**ANNOTATIONS, "annotations": [{**first, **more}, {**other, **less}]})
    found = [(ref.reason, ref.count) for ref in refs if ref.status == "not_stored"]
    assert found == [("attributes with several values", 1), ("score", 1), ("ignore", 1)]
    assert [ref for ref in refs if ref.status != "not_stored"] == refer(collection, ANNOTATIONS)


def attributes_in(ref):
    packed = dict(ref.annotations).get("attributes")
    return None if packed is None else Attributes.unpack(packed).values


def test_attributes_and_flags_are_those_of_the_objects(collection):
    first, other = ANNOTATIONS["annotations"]
    more = {"attributes": {"color": "red", "age": 3, "rotation": 0.0, "none": None}, "occluded": 1}
    data = {**ANNOTATIONS, "annotations": [{**first, **more}, {**other, "attributes": {}}]}
    _, one, two = refer(collection, data)
    assert attributes_in(one) is None
    assert attributes_in(two) == [{}, {"occluded": "1", "color": "red", "age": "3"}]


def with_words(key, *words):
    pairs = zip(ANNOTATIONS["images"], words, strict=True)
    return {**ANNOTATIONS, "images": [{**image, key: word} for image, word in pairs]}


def test_images_have_the_word_in_the_split_key(collection):
    data = with_words("split", "val", 0)
    _, *images = refer(collection, data, images="train", split_key="split")
    assert [(ref.key, ref.split) for ref in images] == [
        ("pets/train/a.jpg", "0"),
        ("pets/train/b.jpg", "val"),
    ]
    _, one, other = refer(collection, with_words("split", "train", None), split_key="split")
    assert [(ref.status, ref.split) for ref in (one, other)] == [("rejected", ""), ("", "train")]
    assert one.key == "pets/a.jpg"


@pytest.mark.parametrize("key", ["split", "set", "subset", "partition", "fold", "Data-Split"])
def test_words_for_splits_that_are_not_used_are_reported(collection, key):
    settings = {"split": r"all\.json", "images": "train"}
    _, lost, unsplit, *images = refer(
        collection, with_words(key, "b", "a"), path="all.json", **settings
    )
    assert (lost.status, lost.reason, lost.count) == ("not_stored", f"{key} of images", 2)
    assert Unclaimed.of_notice(unsplit) == Unclaimed(
        FileRole("unsplit", key),
        ("all.json",),
        2,
        (),
        str(collection / "all.json"),
        words=("a", "b"),
    )
    assert [ref.split for ref in images] == ["", ""]


@pytest.mark.parametrize(
    ("key", "words", "path"),
    [
        ("set", ("A", "A"), "all.json"),  # may be the name of the whole collection
        ("split", ("a" * 41, ["b"]), "all.json"),
        ("license", (1, 2), "all.json"),
        ("split", ("train", "val"), "train.json"),  # the file's name has the word
    ],
)
def test_other_values_of_images_are_not_words_for_splits(collection, key, words, path):
    settings = {"split": r"(all|(?P<split>train))\.json", "images": "train"}
    found = refer(collection, with_words(key, *words), path=path, **settings)
    assert not any(ref.status == "unclaimed" for ref in found[1:])


def test_values_of_images_are_counted_as_not_stored(collection):
    one, other = ANNOTATIONS["images"]
    more = {"weather": "rain", "tags": ["a"], "license": 1, "flickr_url": "http://a"}
    less = {"weather": "", "tags": [], "date_captured": "2020-01-01"}
    refs = refer(collection, {**ANNOTATIONS, "images": [{**one, **more}, {**other, **less}]})
    found = [(ref.reason, ref.count) for ref in refs if ref.status == "not_stored"]
    assert found == [("weather of images", 1), ("tags of images", 1)]


def test_an_image_that_is_listed_twice_is_an_error(collection):
    again = {"id": 9, "file_name": "b.jpg"}
    refs = refer(collection, {**ANNOTATIONS, "images": [*ANNOTATIONS["images"], again]})
    assert [ref.detail for ref in refs[1:] if ref.status == "fatal"] == [
        "images 7 and 9 are both called 'b.jpg': give the annotations of one the image_id of the "
        "other, and remove it"
    ]


STRAY = {"id": 3, "image_id": 9, "category_id": 17, "bbox": [1, 2, 3, 4]}


CAT_AND_DOG = [
    {"id": 18, "name": "dog", "keypoints": ["nose", "tail"], "skeleton": [[1, 2]]},
    {"id": 17, "name": "cat", "keypoints": ["nose", "ear"]},
]


def points_of(collection, categories, *points):
    """The key points of the objects in `b.jpg`: a cat's and a dog's by turns."""
    cat, dog = ANNOTATIONS["annotations"]
    objects = [
        {**(dog if number % 2 else cat), "id": number, "keypoints": each}
        for number, each in enumerate(points)
    ]
    data = {**ANNOTATIONS, "categories": categories, "annotations": objects}
    *_, ref = refer(collection, data)
    packed = dict(ref.annotations).get("keypoints")
    return None if packed is None else KeyPoints.unpack(packed)


def test_key_points_have_the_names_of_all_categories(collection):
    found = points_of(collection, CAT_AND_DOG, [1, 1, 2, 3, 4.5, 1], [5, 6, 2, 0, 0, 0], None, [])
    assert found.names == ["nose", "ear", "tail"]
    assert found.points == [[1, 1, 2, 3, 4.5, 1, 0, 0, 0], [5, 6, 2, 0, 0, 0, 0, 0, 0], None, None]


def test_key_points_without_names_have_numbers(collection):
    plain = ANNOTATIONS["categories"]
    found = points_of(collection, plain, [1, 1, 2, 3, 4.5, 1], [5, 6, 2])
    assert found == KeyPoints(["1", "2"], [[1, 1, 2, 3, 4.5, 1], [5, 6, 2, 0, 0, 0]])


@pytest.mark.parametrize("names", [["p", "p"], ["p", ""], {"1": "p"}])
def test_points_that_names_do_not_tell_apart_have_numbers(names, collection):
    categories = [{**each, "keypoints": names} for each in ANNOTATIONS["categories"]]
    found = points_of(collection, categories, [1, 1, 2, 3, 4, 1])
    assert found == KeyPoints(["1", "2"], [[1, 1, 2, 3, 4, 1]])


@pytest.mark.parametrize("points", [[[1, 1, 2], [3, 4, 1]], {"nose": [1, 1]}, [5, 5], "1 1 2"])
def test_key_points_in_another_form_are_bad(points, collection):
    found = points_of(collection, ANNOTATIONS["categories"], points)
    assert found == KeyPoints(["1"], [[]])


def with_skeletons(**skeletons):
    """A file in which a cat has the points nose and ear, and a dog nose and tail."""
    categories = [{**each, "skeleton": skeletons.get(each["name"])} for each in CAT_AND_DOG]
    objects = [{**each, "keypoints": [1, 1, 2, 3, 4, 1]} for each in ANNOTATIONS["annotations"]]
    return {**ANNOTATIONS, "categories": categories, "annotations": objects}


def test_skeletons_join_points_by_the_names_of_their_category(collection):
    data = with_skeletons(dog=[[1, 2], [2, 1]], cat=[[1, 2], [1, 2]])
    announced, *rest = refer(collection, data)
    assert announced.skeleton == (("nose", "tail"), ("tail", "nose"), ("nose", "ear"))
    assert not [ref for ref in rest if ref.status]


def test_pairs_of_a_skeleton_that_join_no_two_points_are_left_out_with_a_warning(collection):
    pairs = [[0, 1], [1, 2], [1, 3], [1, 1], [1], ["nose", "tail"], None]
    announced, *rest = refer(collection, with_skeletons(dog=pairs, cat="lines"))
    assert announced.skeleton == (("nose", "tail"),)
    remedy = "give each pair the numbers of two key points, from 1 to 2"
    assert [(ref.status, ref.detail) for ref in rest if ref.status] == [
        (
            "warning",
            f"6 pairs in the skeleton of category 'dog', such as [0, 1], are left out: {remedy}",
        ),
        (
            "warning",
            f"1 pair in the skeleton of category 'cat', such as 'lines', is left out: {remedy}",
        ),
    ]


@pytest.mark.parametrize("points", [[1, 1], [1, 1, 2], [1, 1, 2, 1, 1, "x"], "text", [[1, 1, 2]]])
def test_malformed_key_points_are_left_to_be_counted(collection, points):
    assert points_of(collection, CAT_AND_DOG, [1, 1, 2, 3, 4, 1], [1] * 6, points).points[2] == []


def test_no_key_points_are_carried_where_there_are_none(collection):
    assert points_of(collection, CAT_AND_DOG, None, []) is None


def test_references_carry_outlines_in_the_order_of_boxes_where_they_are_asked_for(collection):
    first, other = ANNOTATIONS["annotations"]
    data = {**ANNOTATIONS, "annotations": [{**first, "segmentation": [TRIANGLE]}, other]}
    plain = refer(collection, data)
    file = ImageRef(f"pets/{PATH}", str(collection / PATH), 7, "1")
    refs = list(list_file(Coco(), PATH, file, ListingSettings(with_outlines=True)))
    assert [ref.status for ref in refs] == ["classes", "", ""]
    triangle = Polygons((tuple(map(float, TRIANGLE)),))
    carried = [Masks.unpack(dict(ref.annotations)["masks"]) for ref in refs[1:]]
    assert carried == [Masks(()), Masks((None, triangle))]
    boxes = [tuple(each for each in ref.annotations if each[0] == "boxes") for ref in refs[1:]]
    assert boxes == [ref.annotations for ref in plain if not ref.status]


@pytest.mark.parametrize(
    ("strays", "count"),
    [([STRAY], "1 annotation"), ([STRAY, {**STRAY, "id": 4, "category_id": 1}], "2 annotations")],
)
def test_annotations_of_unlisted_images_are_reported(collection, strays, count):
    refs = refer(collection, {**ANNOTATIONS, "annotations": [*ANNOTATIONS["annotations"], *strays]})
    assert [(ref.status, getattr(ref, "key", "")) for ref in refs] == [
        ("classes", ""),
        ("warning", f"pets/{PATH}"),
        ("", "pets/train/a.jpg"),
        ("", "pets/train/b.jpg"),
    ]
    assert refs[1].detail.startswith(
        f"the file lists no image for {count}, such as annotation 3 of image 9: "
    )


@pytest.mark.parametrize("image_id", [9, "7"])
def test_a_file_without_an_annotation_of_its_images_is_an_error(collection, image_id):
    _, error, *images = refer(
        collection, {**ANNOTATIONS, "annotations": [{**STRAY, "image_id": image_id}]}
    )
    assert (error.status, error.reason, error.key) == ("fatal", "stray_annotations", f"pets/{PATH}")
    assert [(image.status, image.key) for image in images] == [
        ("", "pets/train/a.jpg"),
        ("", "pets/train/b.jpg"),
    ]
    assert error.detail == (
        f"the file lists no image for 1 annotation, such as annotation 3 of image {image_id!r}: "
        "list the images, "
        "or write all ids as numbers or all as text"
    )


def test_a_box_of_an_unlisted_category_has_the_number_as_its_class(collection):
    unlisted = [
        {"id": number, "image_id": 7, "category_id": category, "bbox": [1, 2, 3, 4]}
        for number, category in enumerate((77, "18", "x", "77", "9" * 30), start=10)
    ]
    _, _, image = refer(
        collection, {**ANNOTATIONS, "annotations": [*ANNOTATIONS["annotations"], *unlisted]}
    )
    assert boxes_in(image).labels == [
        "dog",
        "cat",
        77,
        "dog",
        "x",
        77,
        "9" * 30,
    ]


def test_other_files_do_not_concern_us(collection):
    (ref,) = refer(collection, "{}", "annotations/captions_train2017.json")
    assert (ref.status, ref.reason) == ("ignored", "not_annotations")


@pytest.mark.parametrize(
    ("name", "reason", "detail"),
    [
        ("pipe.jpg", "not_a_file", "it is a folder, a device or a pipe, not a file"),
        ("gone.jpg", "vanished", "named by instances_train2017.json: no such file or directory"),
        ("../../etc/passwd", "outside_root", "points outside"),
        ("/etc/passwd", "outside_root", "points outside"),
        ("link.jpg", "outside_root", "is a link that points outside"),
    ],
)
def test_an_image_that_is_not_there_is_one_rejected_image(
    collection, tmp_path_factory, name, reason, detail
):
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.jpg"
    secret.write_bytes(b"secret")
    (collection / "train" / "link.jpg").symlink_to(secret)
    os.mkfifo(collection / "train" / "pipe.jpg")
    _, one, other = refer(
        collection,
        {**ANNOTATIONS, "images": [{"id": 7, "file_name": name}, ANNOTATIONS["images"][1]]},
    )
    bad, good = (one, other) if one.status else (other, one)
    assert (good.key, good.status) == ("pets/train/a.jpg", "")
    assert (bad.status, bad.reason) == ("rejected", reason)
    assert detail in bad.detail


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("{", "Invalid JSON: "),
        ("[]", "Input should be an object"),
        ({**ANNOTATIONS, "images": [{"id": 7}]}, "images.0.file_name (id 7): Field required"),
        ({"images": [], "annotations": []}, "categories: Field required"),
        ({**ANNOTATIONS, "annotations": None}, "annotations: Input should be a valid array"),
        (
            {**ANNOTATIONS, "images": [*ANNOTATIONS["images"], "c.jpg"]},
            "images.2: Input should be an object",
        ),
        (
            {**ANNOTATIONS, "images": [{"id": 7, "file_name": 3}]},
            "images.0.file_name (id 7): Input should be a valid string",
        ),
        (
            {**ANNOTATIONS, "images": [{"id": [7], "file_name": "b.jpg"}]},
            "images.0.id.int (id [7]): Input should be a valid",
        ),
        (
            {**ANNOTATIONS, "categories": [{"id": "x", "name": "a"}]},
            "categories.0.id (id 'x'): Input should be a valid integer",
        ),
        (
            {**ANNOTATIONS, "annotations": [{"id": 1, "image_id": None, "category_id": 17}]},
            "annotations.0.image_id",
        ),
        (
            {**ANNOTATIONS, "categories": [{"id": 17, "name": "a"}, {"id": 18, "name": "a"}]},
            "categories 17 and 18 are both called 'a', and both have annotations: rename one",
        ),
        (
            {**ANNOTATIONS, "categories": [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}]},
            "two categories have the id 1: 'a' and 'b'",
        ),
        (
            {**ANNOTATIONS, "images": [*ANNOTATIONS["images"], ANNOTATIONS["images"][0]]},
            "two images have the id 7: 'b.jpg' and 'b.jpg'",
        ),
        *(
            (
                {
                    **ANNOTATIONS,
                    "annotations": [
                        {"id": 1, "image_id": 7, "category_id": 17, "bbox": [1, 2, 3, 4], **odd}
                    ],
                },
                why,
            )
            for odd, why in (
                (
                    {"bbox": [1, 2, 3]},
                    "bbox of annotation 1 is not a list of 4 numbers: [1, 2, 3]",
                ),
                (
                    {"bbox": [1, 2, "x", 4]},
                    "bbox of annotation 1 is not a list of 4 numbers: [1, 2, 'x', 4]",
                ),
                (
                    {"bbox": [1, 2, 3, 4, 0.5], "segmentation": [TRIANGLE]},
                    "bbox of annotation 1 is not a list of 4 numbers: [1, 2, 3, 4, 0.5]",
                ),
                ({"bbox": {"x": 1}}, "bbox of annotation 1 is not a list of 4 numbers: {'x': 1}"),
                ({"bbox": 7}, "bbox of annotation 1 is not a list of 4 numbers: 7"),
                ({"area": "large"}, "annotations.0.area (id 1): Input should be a valid number"),
                ({"area": math.nan}, "annotations.0.area (id 1): Input should be a finite number"),
                (
                    {"iscrowd": math.nan},
                    "annotations.0.iscrowd (id 1): Input should be a finite number",
                ),
            )
        ),
        *(
            (
                {**ANNOTATIONS, "images": [{"id": 7, "file_name": "b.jpg", "width": width}]},
                "images.0.width (id 7): ",
            )
            for width in ("wide", [1], 1e300, 2**40, -1)
        ),
    ],
)
def test_a_file_that_is_not_coco_is_rejected_with_its_reason(collection, data, why):
    (ref,) = refer(collection, data)
    assert (ref.key, ref.status, ref.reason) == (f"pets/{PATH}", "rejected", "bad_coco")
    assert why in ref.detail


def test_images_may_be_anywhere_below_the_input(collection):
    assert [ref.key for ref in refer(collection, ANNOTATIONS, images="")[1:]] == [
        "pets/a.jpg",
        "pets/b.jpg",
    ]
    moved = refer(
        collection, ANNOTATIONS, "annotations/all.json", split="all.json", images="train/"
    )
    assert [(ref.key, ref.split, ref.status) for ref in moved[1:]] == [
        ("pets/train/a.jpg", "", ""),
        ("pets/train/b.jpg", "", ""),
    ]


@pytest.mark.parametrize("name", ["train\\a.jpg", "./train/a.jpg", "{root}/train/a.jpg"])
@pytest.mark.parametrize("images", ["", "train"])
def test_names_may_be_written_as_tools_write_them(collection, name, images):
    if images and "{root}" not in name:
        name = name.replace("train", ".")
    data = {**ANNOTATIONS, "images": [{"id": 7, "file_name": name.format(root=collection)}]}
    _, image = refer(collection, data, images=images)
    assert (image.key, image.uri) == ("pets/train/a.jpg", str(collection / "train/a.jpg"))


def test_a_pattern_that_is_none_is_an_error_of_the_settings():
    with pytest.raises(ValueError, match=r"source\.split"):
        replace(Coco(), split="(")
    for folder in ("{word}", "{", "{}"):
        with pytest.raises(
            ValueError,
            match=r"^source\.images is .* it can use only \{folder\} and \{split\} in braces",
        ):
            replace(Coco(), images=folder)


def test_ids_may_be_numbers_and_texts():
    text = {"id": "x", "image_id": 7, "category_id": 17, "bbox": [1, 2, 3, 4]}
    data = {**ANNOTATIONS, "annotations": [text, {**text, "id": 5, "bbox": [0, 0, 1, 1]}]}
    found = CocoAnnotations(CocoFile.model_validate(data))
    assert found.boxes(found.images[1]).boxes == [[0, 0, 1, 1], [1, 2, 4, 6]]


def test_it_gives_boxes_masks_and_key_points():
    assert Coco().annotations() == {
        "boxes": "",
        "masks": "",
        "keypoints": "",
        "attributes": "",
        "corners": "",
    }


def test_a_fraction_of_a_pixel_in_a_side_is_left_out(collection):
    def features(width, height):
        image = {"id": 7, "file_name": "b.jpg", "width": width, "height": height}
        return refer(collection, {**ANNOTATIONS, "images": [image]})[-1].annotations

    assert features(40.5, 30.0) == features(40, 30)


@pytest.mark.parametrize(
    "name", ["images\\1/b.jpg", "../../b.jpg", "C:\\pets\\b.jpg", "b.png", "B.jpg", "%62.jpg"]
)
def test_an_image_that_is_named_otherwise_is_found(collection, name):
    images = [{**ANNOTATIONS["images"][0], "file_name": name}, ANNOTATIONS["images"][1]]
    _, *found = refer(collection, {**ANNOTATIONS, "images": images})
    assert sorted(each.status for each in found) == ["", "", "respelled"]
    assert sorted(each.key for each in found if not each.status) == [
        "pets/train/a.jpg",
        "pets/train/b.jpg",
    ]


def test_images_of_one_name_in_several_folders_are_not_taken_for_one(collection):
    images = [
        {"id": 7, "file_name": "one/b.jpg"},
        {"id": 5, "file_name": "two/b.jpg"},
    ]
    _, *found = refer(collection, {**ANNOTATIONS, "images": images})
    assert [(each.status, each.reason) for each in found] == [("rejected", "vanished")] * 2
    assert [boxes_in(each).count for each in found] == [2, 0]


@pytest.mark.parametrize(
    ("boxes", "start"),
    [
        ([[0.1, 0.2, 0.3, 0.3], [0, 0, 1, 1]], "the largest coordinate of its boxes is 1, and"),
        ([None, []], "its annotations have neither bbox nor segmentation, and"),
    ],
)
def test_a_file_without_boxes_in_pixels_is_an_error(collection, boxes, start):
    annotations = [
        {"id": number, "image_id": 7, "category_id": 17, "bbox": box}
        for number, box in enumerate(boxes)
    ]
    found = refer(collection, {**ANNOTATIONS, "annotations": annotations})
    (error,) = (each for each in found if each.status == "fatal")
    assert error.detail.startswith(start)


def test_boxes_around_key_points_are_noted(collection):
    poses = [{**ONE, "id": number, "keypoints": [5, 8, 2, 3, 9, 1]} for number in (1, 2)]
    others = [{**poses[0], "id": 3, "bbox": [1, 2, 3, 4]}]
    found = refer(collection, {**ANNOTATIONS, "annotations": poses + others})
    ((note, count),) = ((each.reason, each.count) for each in found if each.status == "noted")
    assert note.startswith("{images have} objects with key points and neither bbox nor")
    assert count == 1


def test_key_points_that_span_no_box_are_an_error_that_asks_for_boxes(collection):
    annotation = {"id": 1, "image_id": 7, "category_id": 17, "keypoints": [9, 9, 2]}
    found = refer(collection, {**ANNOTATIONS, "annotations": [annotation]})
    (error,) = (each for each in found if each.status == "fatal")
    assert error.detail.endswith("none has key points that a box can enclose: add bbox to each")


def boxed(*boxes):
    """Annotations of an image of 40 x 30 pixels; a box may have its area as a fifth number."""
    annotations = [
        {"id": number, "image_id": 7, "category_id": 17, "bbox": box[:4], "area": [*box, None][4]}
        for number, box in enumerate(boxes)
    ]
    return {**ANNOTATIONS, "annotations": annotations}


@pytest.mark.parametrize(
    ("boxes", "corners"),
    [
        ([[20, 15, 30, 25]] * 3, "0 is two corners, by the image's size or by its area, as in 3"),
        ([[5, 5, 9, 9, 81], [5, 5, 9, 9, 16], [8, 4, 20, 10, 72]], "1 is two corners, by the "),
        ([[1, 2, 3, 4, 4], [10, 10, 12, 20, 20]], "0 is two corners, by the image's size or by"),
    ],
)
def test_boxes_that_are_corners_are_an_error(collection, boxes, corners):
    found = refer(collection, boxed(*boxes))
    (error,) = (each for each in found if each.status == "fatal")
    assert error.detail.startswith(f"bbox of annotation {corners}")
    assert error.detail.endswith("subtract x from the third number, and y from the fourth")


@pytest.mark.parametrize(
    "boxes",
    [
        [[20, 15, 30, 25]],
        [[20, 15, 30, 25], [1, 2, 3, 4], [5, 5, 9, 9, 81], [5, 5, 9, 9, 40]],
        [[30, 20, 10.5, 10.5]] * 3,
        [[30, 20, 60, 70]] * 3,
        [[0, 0, 40, 30, 1200]] * 3,
        [[30, 20, 20, 15]] * 3,
    ],
)
def test_a_few_boxes_may_leave_the_image_and_areas_may_be_those_of_masks(collection, boxes):
    found = refer(collection, boxed(*boxes))
    assert [each for each in found if each.status == "fatal"] == []


@pytest.mark.parametrize("boxes", [[[0, 0, 1, 1]], [[0.5, 0, 0.25, 1], [1, 2, 3, 4]]])
def test_small_boxes_may_be_in_pixels(collection, boxes):
    annotations = [
        {"id": number, "image_id": 7, "category_id": 17, "bbox": box}
        for number, box in enumerate(boxes)
    ]
    found = refer(collection, {**ANNOTATIONS, "annotations": annotations})
    assert [each for each in found if each.status == "fatal"] == []


@pytest.mark.parametrize(
    ("outline", "reason"),
    [([[-(2**63) - 1]], "bad_polygon"), ({"size": [10**30, 1], "counts": [1]}, "bad_rle")],
)
def test_an_outline_with_a_number_beyond_64_bits_is_faulty(tmp_path, outline, reason):
    annotation = {"id": 5, "image_id": 1, "category_id": 1, "segmentation": outline}
    data = {"images": [], "categories": [], "annotations": [annotation]}
    (tmp_path / "a.json").write_text(json.dumps(data))
    (found,) = read_coco(str(tmp_path / "a.json"), OutlinedFile).annotations
    assert read_segmentation(json.loads(found.outline)).reason == reason


def test_panoptic_masks_are_named(collection):
    panoptic = {"image_id": 7, "file_name": "7.png", "segments_info": [{"id": 1}]}
    (notice,) = refer(collection, {**ANNOTATIONS, "annotations": [panoptic]})
    assert (notice.status, notice.detail) == (
        "rejected",
        "it has panoptic masks: set source.kind to coco_panoptic, or use the file "
        "instances_*.json of the same images",
    )


def test_a_file_of_datumaro_is_not_one_of_coco():
    head = b'{"info": {}, "categories": {"label": {"labels": []}}, "items": [{"id": "1"'
    sketch = FolderSketch.of(["images/1.jpg", "annotations/train.json"])
    sketch = replace(sketch, heads={"annotations/train.json": head})
    assert not list(Coco.recognize(sketch))


def test_folders_that_were_not_looked_into_may_hold_the_images():
    names = {"": Names(("x.json",), ("train",)), "train": Names((), ("Plants",))}
    head = b'{"images": [{"id": 1, "file_name": "train/Plants/400/1.jpg"'
    (found,) = Coco.recognize(FolderSketch(names, {"x.json": head}))
    assert (found.needs, found.settings["source"]["images"]) == (None, "")
    deeper = {"train/Plants": Names(("2.jpg",), ("401",))}
    (found,) = Coco.recognize(FolderSketch(names, {"x.json": head}, deeper=deeper))
    assert found.needs == (
        "it is not clear where the images of x.json are, such as train/Plants/400/1.jpg: to "
        "convert the images without it, add --set 'ignore=[\"/x.json\"]'; or move the file into "
        "the folder of its images"
    )
