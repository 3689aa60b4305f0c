"""Datumaro's importer of the Object Detection API's format reads masks to the pixel."""

import numpy as np
import pytest

from tests.support.drawn_objects import draw_objects, write_objects

REASON = "needs an environment of its own: make test-interop"
datumaro = pytest.importorskip("datumaro", reason=REASON)


def test_masks_and_classes(convert, tmp_path):
    flags = ("--config=configs/coco.yaml", "--set=masks=png")
    dataset = convert(write_objects(tmp_path / "coco"), "tf_object_detection", *flags)
    found = datumaro.Dataset.import_from(str(dataset.folder), "tf_detection_api")
    classes = found.categories()[datumaro.AnnotationType.label]
    drawn = draw_objects()
    assert sorted(int(item.id) for item in found) == list(range(len(drawn)))
    for item in found:
        objects = drawn[int(item.id)]
        assert [classes[each.label].name for each in item.annotations] == [
            each.name for each in objects
        ]
        for annotation, each in zip(item.annotations, objects, strict=True):
            assert np.array_equal(annotation.image, each.mask)
