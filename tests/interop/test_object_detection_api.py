"""The Object Detection API's own decoder reads masks and key points to the pixel."""

import importlib.util
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.support.drawn_objects import CATEGORIES, POINTS, draw_objects, write_objects

REASON = "needs an environment of its own: make test-interop"


@dataclass(frozen=True)
class Api:
    """What is used of the API."""

    decoder: Callable[..., Any]
    png_masks: int
    read_records: Callable[[list[str]], Iterable[Any]]


@pytest.fixture(scope="module")
def api():
    """The API, on today's TensorFlow and protocol buffers."""
    if importlib.util.find_spec("object_detection") is None:
        pytest.skip(REASON)
    # Its protocol buffers were generated for an old version; only this implementation takes them.
    os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"
    import tensorflow as tf
    from tensorflow.python.ops import cond, control_flow_case, control_flow_ops, while_loop

    # tf_slim expects them where TensorFlow 1 had them.
    control_flow_ops.case = control_flow_case.case
    control_flow_ops.cond = cond.cond
    control_flow_ops.while_loop = while_loop.while_loop
    from object_detection.data_decoders.tf_example_decoder import TfExampleDecoder
    from object_detection.protos import input_reader_pb2

    return Api(TfExampleDecoder, input_reader_pb2.PNG_MASKS, tf.data.TFRecordDataset)


@pytest.fixture
def stored(convert, tmp_path):
    flags = ("--config=configs/coco.yaml", "--set=masks=png")
    return convert(write_objects(tmp_path / "coco"), "tf_object_detection", *flags)


def decode_all(api, dataset, **options):
    """What the decoder makes of each record, with the objects that were drawn."""
    drawn, decoder = draw_objects(), api.decoder(**options)
    found = []
    for split in dataset.marker["splits"]:
        for record in api.read_records(dataset.files(split)):
            decoded = {key: value.numpy() for key, value in decoder.decode(record).items()}
            number = int(decoded["filename"].decode().partition(".")[0])
            found.append((decoded, drawn[number]))
    assert len(found) == len(drawn)
    return found


def test_masks_boxes_and_classes(api, stored):
    found = decode_all(
        api,
        stored,
        load_instance_masks=True,
        instance_mask_type=api.png_masks,
        label_map_proto_file=str(stored.folder / "label_map.pbtxt"),
    )
    for decoded, objects in found:
        masks = decoded["groundtruth_instance_masks"]
        assert masks.shape == (len(objects), *decoded["image"].shape[:2])
        assert all(
            np.array_equal(mask, each.mask) for mask, each in zip(masks, objects, strict=True)
        )
        ids = [CATEGORIES[each.name] for each in objects]
        assert decoded["groundtruth_classes"].tolist() == ids
        sides = np.array([each.sides for each in objects]).reshape(-1, 4)
        assert np.allclose(decoded["groundtruth_boxes"], sides, atol=1e-6)
        assert decoded["groundtruth_area"].tolist() == [each.mask.sum() for each in objects]
        assert not decoded["groundtruth_is_crowd"].any()


def test_key_points(api, stored):
    for decoded, objects in decode_all(api, stored, num_keypoints=len(POINTS)):
        points = np.array([each.fractions for each in objects], np.float32).reshape(-1, 3, 3)
        is_labeled = points[..., 2] > 0
        assert np.array_equal(decoded["groundtruth_keypoint_visibilities"], is_labeled)
        wanted = np.where(is_labeled[..., None], points[..., 1::-1], np.nan)
        assert np.array_equal(decoded["groundtruth_keypoints"], wanted, equal_nan=True)
