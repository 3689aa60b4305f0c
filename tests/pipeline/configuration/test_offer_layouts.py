"""What the ways to read an input leave out: the annotations of the other ways."""

import pytest

from recordmill.pipeline.configuration.offer_layouts import offer_layouts
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized

VOC = b"<annotation><filename>0.jpg</filename></annotation>"
BOX = b"0 0.5 0.5 0.2 0.2\n"
COCO = b'{"images": [], "annotations": [], "categories": []}'


def ways(files, *kinds):
    sketch = FolderSketch.of([*files, "images/0.jpg"], files)
    found = [Recognized({"source": {"kind": kind, "images": "x"}}, kind) for kind in kinds]
    return offer_layouts(found, sketch)


@pytest.mark.parametrize(
    ("files", "kinds", "left_out"),
    [
        (
            {"Annotations/0.xml": VOC, "labels/train/0.txt": BOX, "data.yaml": b"nc: 1"},
            ("voc", "yolo"),
            ("[/data.yaml, /labels/]", "[/Annotations/]"),
        ),
        (
            {"images/0.xml": VOC, "images/1.xml": VOC, "images/0.txt": BOX},
            ("voc", "yolo"),
            ("[/images/0.txt]", "[/images/*.xml]"),
        ),
        (
            {"a/x.json": COCO, "a/0.json": b'{"shapes": []}'},
            ("coco", "labelme"),
            ("[/a/0.json]", "[/a/x.json]"),
        ),
    ],
)
def test_each_way_leaves_out_the_annotations_of_the_others(files, kinds, left_out):
    printed = [
        f"{kind} ({kind}): --set source.kind={kind} --set source.images=x --set layout=auto "
        f"--set 'ignore={each}'"
        for kind, each in zip(kinds, left_out, strict=True)
    ]
    assert ways(files, *kinds) == printed


def test_ways_of_one_kind_leave_out_nothing():
    assert (
        ways({"Annotations/0.xml": VOC}, "voc", "voc") == ["voc (voc): --set source.images=x"] * 2
    )
