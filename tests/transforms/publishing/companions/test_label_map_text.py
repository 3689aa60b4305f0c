from make_settings import make_settings

from recordmill.transforms.publishing.companions.describe_dataset import (
    describe_label_map,
    note_background,
)


def test_the_object_detection_apis_readers_get_their_label_map(stage, say):
    settings = make_settings(convention="tf_object_detection")
    assert say(describe_label_map, stage(settings, labels={"cat": 1, 'a "b"': 2})) == {
        "label_map.pbtxt": b'item {\n  id: 1\n  name: "cat"\n}\nitem {\n  id: 2\n  name: "a '
        b'\\"b\\""\n}\n'
    }


def test_the_id_of_the_background_is_left_out_where_nothing_has_it(stage, say):
    settings = make_settings(convention="tf_object_detection")
    labels = {"pieces": 0, "cat": 1, "dog": 2, "emu": 3}  # "pieces" as Roboflow's COCO lists it
    text = say(describe_label_map, stage(settings, labels=labels))["label_map.pbtxt"]
    assert text.decode().count("item {") == 3
    assert b"pieces" not in text
    text = say(describe_label_map, stage(settings))["label_map.pbtxt"]
    assert text.startswith(b'item {\n  id: 0\n  name: "cat"\n}\n')


def test_a_class_that_is_the_background_to_readers_is_noted():
    labels = {"cat": 0, "dog": 1}
    assert list(note_background(labels, {"dog": 1}, "label_map.pbtxt")) == []
    assert list(note_background(labels, {"cat": 1}, "")) == []
    assert list(note_background(labels, {"cat": 1}, "label_map.pbtxt")) == [
        "label_map.pbtxt gives 'cat' the id 0, which the Object Detection API keeps for the "
        "background, and refuses: "
        "set labels.ids=names to count classes from 1"
    ]


def test_other_conventions_have_none(stage, say):
    assert say(describe_label_map, stage()) == {}
