from recordmill.transforms.dataset_settings import DatasetSettings
from recordmill.transforms.describing.label_map_text import describe_label_map


def test_the_object_detection_apis_readers_get_their_label_map(stage, say):
    settings = DatasetSettings(convention="tf_object_detection")
    assert say(describe_label_map, stage(settings, labels={"cat": 1, 'a "b"': 2})) == {
        "label_map.pbtxt": b'item {\n  id: 1\n  name: "cat"\n}\nitem {\n  id: 2\n  name: "a \\"b\\""\n}\n'
    }


def test_other_conventions_have_none(stage, say):
    assert say(describe_label_map, stage()) == {}
