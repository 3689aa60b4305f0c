import json
import os
from pathlib import Path

import pytest
from carried_annotations import boxes_in, labels_in

from recordmill.annotations.attributes import Attributes
from recordmill.annotations.boxes import Boxes
from recordmill.annotations.keypoints import KeyPoints
from recordmill.annotations.masks import Masks
from recordmill.imaging.masks.outline import Polygons
from recordmill.schemas.errors import SettingError
from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.sources.label_studio import LabelStudio, find_path
from recordmill.transforms.inputs.sources.source import list_file

PATH = "export/tasks.json"
IMAGE = "export/images/1.jpg"


def region(kind="rectangle", number=1, labels=("car",), **value):
    more = value or {"x": 10, "y": 20, "width": 50, "height": 10, "rotation": 0}
    return {
        "id": f"r{number}",
        "type": f"{kind}labels",
        "value": {**more, f"{kind}labels": list(labels)},
        "to_name": "image",
        "from_name": "label",
        "original_width": 40,
        "original_height": 30,
    }


TRIANGLE = region("polygon", 2, ["cat"], points=[[10, 10], [50, 10], [50, 90]], closed=True)


def choice(*names, number=9, **more):
    return {"id": f"c{number}", "type": "choices", "value": {"choices": list(names)}, **more}


def annotation(*results, **more):
    return {"result": list(results), "was_cancelled": False, "ground_truth": False, **more}


def task(*annotations, image="/data/upload/1/1.jpg", **data):
    return {"id": 1, "annotations": list(annotations), "data": {"image": image, **data}}


def refer(folder, tasks, images=(IMAGE,), outlines=False, **settings):
    data = tasks if isinstance(tasks, bytes) else json.dumps(tasks).encode()
    for name, content in (*((each, b"jpeg") for each in images), (PATH, data)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    file, wanted = (
        ImageRef(PATH, str(folder / PATH), 7, "1"),
        ListingSettings(with_outlines=outlines),
    )
    return list(list_file(LabelStudio(**settings), PATH, file, wanted))


def not_stored(listed):
    return [(each.reason, each.count) for each in listed if each.status == "not_stored"]


def rejections(listed):
    return [
        (each.key, each.status, each.reason, each.detail)
        for each in listed
        if each.status in ("rejected", "fatal")
    ]


def references(listed):
    return [each for each in listed if type(each) is ImageRef]


def test_each_task_has_the_boxes_around_its_regions(tmp_path):
    listed = refer(tmp_path, [task(annotation(region(), TRIANGLE))])
    (ref,) = references(listed)
    assert ref.key == IMAGE
    boxes = boxes_in(ref)
    assert boxes.boxes == [[4, 6, 24, 9], [4, 3, 20, 27]]
    assert (boxes.labels, boxes.drawn_on_size) == (["car", "cat"], [40, 30])
    assert boxes.shapes == {"enclosed": 1}
    assert listed[0] == ClassNames(str(tmp_path / PATH), ("car", "cat"))
    assert not_stored(listed) == [("masks", 1)]


def test_outlines_are_carried_if_they_are_wanted(tmp_path):
    listed = refer(tmp_path, [task(annotation(region(), TRIANGLE))], outlines=True)
    outlines = Masks.unpack(dict(references(listed)[0].annotations)["masks"]).outlines
    assert outlines == (None, Polygons(((4.0, 3.0, 20.0, 3.0, 20.0, 27.0),)))
    assert not_stored(listed) == []


def test_shapes_may_be_dropped_or_refused(tmp_path):
    tasks = [task(annotation(region(), TRIANGLE))]
    boxes = boxes_in(references(refer(tmp_path, tasks, other_shapes="drop"))[0])
    assert (boxes.labels, boxes.shapes) == (["car"], {"other_shape": 1})
    detail = "task 1: region 'r2' is not a rectangle, and source.other_shapes is reject"
    listed = refer(tmp_path, tasks, other_shapes="reject")
    assert rejections(listed) == [(IMAGE, "rejected", "refused_shape", detail)]


def test_a_region_may_have_its_label_in_a_result_of_its_own(tmp_path):
    place = {"x": 10, "y": 20, "width": 50, "height": 10, "rotation": 0}
    apart = [
        {**region(), "type": "rectangle", "value": place},
        {**region(), "type": "labels", "value": {**place, "labels": ["dog"]}},
    ]
    boxes = boxes_in(references(refer(tmp_path, [task(annotation(*apart))]))[0])
    assert (boxes.boxes, boxes.labels) == ([[4, 6, 24, 9]], ["dog"])


def test_the_ground_truth_counts_or_the_last_change(tmp_path):
    first = annotation(region(labels=["a"]), updated_at="2024-01-01")
    last = annotation(region(labels=["b"]), updated_at="2024-01-02")
    truth = annotation(region(labels=["c"]), updated_at="2023-01-01", ground_truth=True)
    skipped = annotation(region(labels=["d"]), updated_at="2025-01-01", was_cancelled=True)
    for given, label, others in (
        ([first, last, skipped], "b", 1),
        ([first, last, truth, skipped], "c", 2),
    ):
        listed = refer(tmp_path, [task(*given)])
        assert boxes_in(references(listed)[0]).labels == [label]
        assert not_stored(listed) == [("further annotations", others)]


def test_skipped_tasks_and_those_without_annotation_are_left_out(tmp_path):
    tasks = [task(annotation(was_cancelled=True)), task(), task(annotation())]
    (ref,) = references(refer(tmp_path, tasks))
    assert boxes_in(ref).boxes == []


def test_a_choice_is_the_class_of_its_image(tmp_path):
    tasks = [
        task(annotation(choice("day"), region())),
        task(annotation(choice("day", "rain")), image="2.jpg"),
    ]
    listed = refer(tmp_path, tasks, images=(IMAGE, "export/images/2.jpg"), labels="choice")
    (ref,) = references(listed)
    assert (ref.key, ref.label, ref.annotations) == (IMAGE, "day", ())
    detail = "task 2: it has 2 choices, and source.labels is choice, which needs one"
    wanted = ("export/images/2.jpg", "rejected", "bad_annotations", detail)
    assert rejections(listed) == [wanted]
    assert not_stored(listed) == [("regions", 1)]


def test_choices_are_the_classes_of_their_image(tmp_path):
    tasks = [task(annotation(choice("day", "rain"), choice("day", number=8)))]
    listed = refer(tmp_path, tasks, labels="choices")
    assert labels_in(references(listed)[0]) == ["day", "rain"]


def test_a_file_of_choices_alone_names_the_setting(tmp_path):
    ((_, status, reason, detail),) = rejections(refer(tmp_path, [task(annotation(choice("day")))]))
    assert (status, reason) == ("fatal", "bad_annotations")
    assert detail.startswith("it has 1 choice and no regions: add --set source.labels=choice ")


def test_what_is_not_stored_is_counted(tmp_path):
    results = [
        region(labels=["car", "van"]),
        choice("day"),
        {"id": "t", "type": "textarea", "value": {"text": ["a"]}},
        {"type": "relation", "from_id": "r1", "to_id": "r2", "direction": "right"},
    ]
    for each in results:
        each["to_name"] = "image"
    listed = refer(tmp_path, [task(annotation(*results))])
    assert not_stored(listed) == [("choices", 1), ("further labels", 1), ("other results", 1)]


def test_answers_about_a_region_are_its_attributes(tmp_path):
    def answer(name, **value):
        return {"id": "r1", "from_name": name, "to_name": "image", "value": value}

    results = [
        region(),
        answer("color", x=10, y=20, choices=["red"]),
        answer("age", number=3),
        answer("quality", rating=4),
        answer("plate", text=["AB 1"]),
        answer("parts", choices=["door", "wheel"]),
        region(number=2),
    ]
    listed = refer(tmp_path, [task(annotation(*results))])
    packed = dict(references(listed)[-1].annotations)["attributes"]
    first = {"color": "red", "age": "3", "quality": "4", "plate": "AB 1"}
    assert Attributes.unpack(packed).values == [first, {}]
    assert not_stored(listed) == [("attributes with several values", 1)]


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("/data/upload/3/1f2e3d4c-1.jpg", "/data/upload/3/1f2e3d4c-1.jpg"),
        ("/data/upload/3/caf%C3%A9.jpg", "/data/upload/3/café.jpg"),
        ("/data/local-files/?d=photos/a%20b.jpg", "photos/a b.jpg"),
        ("s3://bucket/photos/1.jpg", "/photos/1.jpg"),
        ("https://host/photos/1.jpg?X-Signature=2", "/photos/1.jpg"),
        ("photos/100%.jpg", "photos/100%.jpg"),
        ("C:\\photos\\1.jpg", "C:/photos/1.jpg"),
    ],
)
def test_the_address_of_an_image_has_a_path(address, path):
    assert find_path(address) == path


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("/data/upload/3/1f2e3d4c-1.jpg", "export/images/1f2e3d4c-1.jpg"),
        ("/data/upload/3/1f2e3d4c-1.jpg", "export/images/1.jpg"),
        ("/data/upload/3/1f2e3d4c-1.jpg", "export/1.jpg"),
        ("/data/local-files/?d=street/1.jpg", "export/images/street/1.jpg"),
        ("s3://bucket/street/1.jpg", "export/images/1.jpg"),
    ],
)
def test_an_image_is_found_by_its_name(tmp_path, address, place):
    listed = refer(tmp_path, [task(annotation(region()), image=address)], images=(place,))
    assert [each.key for each in references(listed)] == [place]


def test_a_missing_image_is_rejected_with_its_boxes(tmp_path):
    listed = refer(tmp_path, [task(annotation(region()), image="2.jpg")])
    ((key, status, reason, _),) = rejections(listed)
    assert (key, status, reason) == ("export/images/2.jpg", "rejected", "vanished")
    assert boxes_in(next(each for each in listed if each.status == "rejected")).labels == ["car"]


def test_the_image_may_be_under_another_key(tmp_path):
    tasks = [task(annotation(region()), image="x.png", photo="1.jpg")]
    (ref,) = references(refer(tmp_path, tasks, image_key="photo"))
    assert ref.key == IMAGE
    ((_, _, reason, detail),) = rejections(refer(tmp_path, tasks, image_key="picture"))
    assert reason == "bad_annotations"
    assert detail == "task 1 names no image: set source.image_key (image, photo)"


@pytest.mark.parametrize(
    ("results", "detail"),
    [
        ([region(labels=[])], "region 'r1' has no label"),
        ([{**region(), "original_width": None}], "a region has no original_width and"),
        ([region(), {**TRIANGLE, "to_name": "other"}], "its regions are on several images"),
        ([region(), {**TRIANGLE, "item_index": 1}], "its regions are on several images"),
    ],
)
def test_a_malformed_region_rejects_its_image(tmp_path, results, detail):
    other = task(annotation(region()), image="2.jpg")
    listed = refer(
        tmp_path, [task(annotation(*results)), other], images=(IMAGE, "export/images/2.jpg")
    )
    ((key, status, reason, why),) = rejections(listed)
    assert (key, status, reason) == (IMAGE, "rejected", "bad_annotations")
    assert why.startswith(f"task 1: {detail}")
    assert [each.key for each in references(listed)] == ["export/images/2.jpg"]


@pytest.mark.parametrize("data", [b"no json", b"{}", b"[7]", b'[{"id": 1}]'])
def test_other_files_are_rejected(tmp_path, data):
    ((key, status, reason, _),) = rejections(refer(tmp_path, data))
    assert (key, status, reason) == (PATH, "rejected", "bad_annotations")


def test_the_template_of_the_folder_is_checked():
    with pytest.raises(SettingError, match=r"source\.images is '\{split\}'"):
        LabelStudio(images="{split}")


HEAD = b'[{"id": 1, "annotations": [{"id": 1, "result": [{"original_width": 40'


@pytest.mark.parametrize(
    ("files", "source"),
    [
        (["export.json", "images/1.jpg"], {}),
        (["export.json", "1.jpg"], {"images": "{folder}"}),
        (["export.json", "frames/1.jpg"], {"images": "frames"}),
    ],
)
def test_the_folder_of_the_images_is_recognized(files, source):
    (found,) = LabelStudio.recognize(FolderSketch.of(files, {"export.json": HEAD}))
    assert found.settings["source"] == {"kind": "label_studio", **source}
    assert found.needs is None


@pytest.mark.parametrize("head", [b'{"annotations": [], "result": 1}', b'[{"annotations": []}]'])
def test_other_json_is_not_recognized(head):
    sketch = FolderSketch.of(["export.json", "1.jpg"], {"export.json": head})
    assert [*LabelStudio.recognize(sketch)] == []


def point(number, name, x, y, parent="r1"):
    return region("keypoint", number, [name], x=x, y=y, width=0.5) | {"parentID": parent}


def key_points_in(ref):
    return KeyPoints.unpack(dict(ref.annotations)["keypoints"])


def test_points_with_a_parent_are_its_key_points_under_the_names_of_the_whole_file(tmp_path):
    """As in test_export_yolo/data_keypoints.json of label-studio-sdk: points before rectangles."""
    first = task(annotation(point(2, "nose", 50, 40), point(3, "ear", 25, 10), region()))
    second = task(annotation(region(), point(2, "tail", 100, 0), TRIANGLE | {"id": "t"}))
    second["data"]["image"] = "2.jpg"
    images = (IMAGE, "export/images/2.jpg")
    listed = refer(tmp_path, [first, second], images=images)
    refs = [each for each in listed if type(each) is ImageRef]
    names = ["nose", "ear", "tail"]
    both = [20, 12, 2, 10, 3, 2, 0, 0, 0]
    assert key_points_in(refs[0]) == KeyPoints(names, [both])
    assert key_points_in(refs[1]) == KeyPoints(names, [[0, 0, 0, 0, 0, 0, 40, 0, 2], None])
    assert boxes_in(refs[0]).labels == ["car"]
    assert not_stored(listed) == [("masks", 1)]


TWO = [region(), region(number=2, x=40, y=20, width=50, height=60)]


def test_points_belong_to_the_region_to_which_a_relation_joins_them(tmp_path):
    """As in exports of DeepLabCut, where other points belong to no individual."""
    results = [
        *TWO,
        point(3, "nose", 1, 1, parent=None),
        point(4, "tail", 80, 70, parent="gone"),
        {"type": "relation", "from_id": "r3", "to_id": "r1", "direction": "right"},
    ]
    found = key_points_in(references(refer(tmp_path, [task(annotation(*results))]))[0])
    nose, tail = [0.4, 0.3, 2, 0, 0, 0], [0, 0, 0, 32, 21, 2]
    assert found.points == [pytest.approx(nose), None, pytest.approx(tail)]


def test_points_of_no_region_belong_to_the_only_one_that_they_are_inside(tmp_path):
    points = [point(4, "ear", 55, 25, parent=None), point(5, "tail", 80, 70, parent="gone")]
    found = key_points_in(references(refer(tmp_path, [task(annotation(*TWO, *points))]))[0])
    assert found.points == [None, pytest.approx([0, 0, 0, 32, 21, 2])]
    assert found.lost == [["several_regions", 0]]


LANDMARKS = [point(11, "nose", 50, 40, None), point(12, "ear", 25, 10, None)]


def test_points_outside_all_regions_are_the_landmarks_of_their_image(tmp_path):
    second = task(annotation(TRIANGLE, point(13, "ear", 75, 10, None)), image="2.jpg")
    listed = refer(
        tmp_path, [task(annotation(*LANDMARKS)), second], images=(IMAGE, "export/images/2.jpg")
    )
    first, other = references(listed)
    assert boxes_in(first) == Boxes([[0, 0, 40, 30]], ["object"], {}, [40, 30])
    assert key_points_in(first) == KeyPoints(["nose", "ear"], [[20, 12, 2, 10, 3, 2]])
    assert boxes_in(other).labels == ["cat", "object"]
    assert key_points_in(other).points == [None, [0, 0, 0, 30, 3, 2]]
    ((note, count),) = ((each.reason, each.count) for each in listed if each.status == "noted")
    assert note.startswith("{images have} key points outside all regions")
    assert count == 2


def test_points_outside_all_regions_may_be_objects(tmp_path):
    inside = point(3, "nose", 25, 25, None)
    results = [region(), inside, *LANDMARKS, point(4, "ear", 0, 0)]
    listed = refer(tmp_path, [task(annotation(*results))], points="objects")
    (ref,) = references(listed)
    whole = [0, 0, 40, 30]
    assert boxes_in(ref).labels == ["car", "nose", "nose", "ear"]
    assert boxes_in(ref).boxes == [[4, 6, 24, 9], whole, whole, whole]
    noses = [10, 7.5, 2, 0, 0, 0], [20, 12, 2, 0, 0, 0]
    points = [[0, 0, 0, 0, 0, 2], *noses, [0, 0, 0, 10, 3, 2]]
    assert key_points_in(ref) == KeyPoints(["nose", "ear"], points)


def test_a_point_may_have_its_label_in_a_result_of_its_own(tmp_path):
    place = {"x": 50, "y": 40, "width": 0.5}
    more = {**region(), "type": "keypoint", "value": place}
    label = {**more, "type": "labels", "value": {**place, "labels": ["nose"]}}
    listed = refer(tmp_path, [task(annotation(more, label))])
    assert key_points_in(references(listed)[0]) == KeyPoints(["nose"], [[20, 12, 2]])


def test_points_in_fractions_are_refused(tmp_path):
    points = [point(1, "nose", 0.5, 0.4, None), point(2, "ear", 0.25, 0.1, None)]
    ((_, _, reason, detail),) = rejections(refer(tmp_path, [task(annotation(*points))]))
    assert reason == "bad_annotations"
    assert "its boxes are fractions of the image" in detail


def test_of_points_with_one_name_the_last_counts(tmp_path):
    points = [point(2, "nose", 50, 40), point(3, "nose", 25, 10)]
    listed = refer(tmp_path, [task(annotation(region(), *points))])
    found = key_points_in(references(listed)[0])
    assert found == KeyPoints(["nose"], [[10, 3, 2]], lost=[["repeated", 0]])
    assert not_stored(listed) == []


CLONE = Path(os.environ.get("RECORDMILL_CLONES", "no clones"), "HumanSignal/label-studio-sdk")
EXPORTED = CLONE / "tests/custom/converter/data/test_export_yolo/data_keypoints.json"


@pytest.mark.skipif(
    not EXPORTED.exists(), reason="needs RECORDMILL_CLONES with HumanSignal/label-studio-sdk"
)
def test_key_points_of_label_studios_own_export(tmp_path):
    listed = refer(tmp_path, EXPORTED.read_bytes(), images=("export/images/image1.jpg",))
    (ref,) = (each for each in listed if type(each) is ImageRef)
    assert boxes_in(ref).labels == ["person"]
    found = key_points_in(ref)
    assert found.names == ["nose", "left_eye", "right_eye"]
    nose = [64.44444444444444 * 2.16, 39.290780141843975 * 1.74, 2]
    assert found.points[0][:3] == pytest.approx(nose)


def test_a_short_export_is_named(tmp_path):
    value = {"x": 1, "y": 2, "width": 3, "height": 4, "rectanglelabels": ["car"]}
    task = {"image": "1.jpg", "label": [value], "annotator": 1, "annotation_id": 7}
    (found,) = rejections(refer(tmp_path, [task]))
    assert found[-1] == "it is an export as JSON-MIN: export the project as JSON"


def test_other_results_and_remarks_about_a_region_are_counted(tmp_path):
    more = {"id": "r1", "to_name": "image", "from_name": "more", "type": "taxonomy"}
    taxonomy = {**more, "value": {"x": 10, "y": 20, "taxonomy": [["a", "b"]]}}
    remarked = {**region(number=2), "meta": {"text": ["half hidden"]}}
    listed = refer(tmp_path, [task(annotation(region(), taxonomy, remarked))])
    assert not_stored(listed) == [("other results", 1), ("remarks", 1)]


@pytest.mark.parametrize("tasks", [[], [task()], [task(annotation(region(), was_cancelled=True))]])
def test_a_file_without_annotations_is_ignored(tasks, tmp_path):
    (found,) = refer(tmp_path, tasks)
    assert (found.key, found.status, found.reason) == (PATH, "ignored", "no_images")
