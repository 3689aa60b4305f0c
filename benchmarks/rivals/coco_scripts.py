"""The two scripts `create_coco_tf_record.py` of TensorFlow's models, with masks.

Their packages and TensorFlow must be installed; of the packages that these need, only those that
the scripts use (see ../README.md).
"""

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read on import


def run_official(annotations: Path, images: Path, output: Path) -> None:
    """Runs the script of official/vision, with as many processes as processors."""
    # Without `__init__`, which imports every model.
    found = importlib.util.find_spec("official.vision")
    if found is None:
        raise ModuleNotFoundError("tf-models-official is not installed")
    package = ModuleType("official.vision")
    package.__path__ = list(found.submodule_search_locations or ())
    sys.modules["official.vision"] = package
    from absl import flags
    from official.vision.data import create_coco_tf_record as script

    flags.FLAGS(["create_coco_tf_record"])
    script._create_tf_record_from_coco_annotations(
        str(annotations),
        [str(images)],
        str(output / "train"),
        1,
        object_annotations_file=str(annotations),
        include_masks=True,
    )


def run_object_detection(annotations: Path, images: Path, output: Path) -> None:
    """Calls the Object Detection API's function for an image in a loop.

    Its own `main` does not start on today's protocol buffers and TensorFlow.
    """
    for name in ("contextlib2", "object_detection.utils.label_map_util"):
        sys.modules[name] = ModuleType(name)  # which the function does not use
    import object_detection.utils as package
    import tensorflow as tf

    package.label_map_util = sys.modules["object_detection.utils.label_map_util"]
    from object_detection.dataset_tools import create_coco_tf_record as script

    content = json.loads(annotations.read_bytes())
    own: dict[int, list[object]] = {}
    for each in content["annotations"]:
        own.setdefault(each["image_id"], []).append(each)
    categories = {each["id"]: each for each in content["categories"]}
    with tf.io.TFRecordWriter(str(output / "train-00000-of-00001.tfrecord")) as writer:
        for image in content["images"]:
            objects = own.get(image["id"], [])
            made = script.create_tf_example(image, objects, str(images), categories, True)
            writer.write(made[1].SerializeToString())


SCRIPTS = {"official": run_official, "object_detection": run_object_detection}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--script", choices=SCRIPTS, required=True)
    parser.add_argument("--input", type=Path, required=True, help="folder of COCO's files")
    parser.add_argument("--output", type=Path, required=True, help="folder for the TFRecord file")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True)
    SCRIPTS[arguments.script](
        arguments.input / "annotations/instances_train2017.json",
        arguments.input / "train2017",
        arguments.output,
    )
