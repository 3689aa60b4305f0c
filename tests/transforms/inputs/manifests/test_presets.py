import pytest

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.manifests.columns import Entry
from recordmill.transforms.inputs.manifests.presets import ML_USE, read_automl, read_vertex

GCS = "gs://b/a.jpg"


def test_vertex_ai():
    use = {"dataItemResourceLabels": {ML_USE: "test", "x": "y"}}
    one = {"classificationAnnotation": {"displayName": "daisy", "annotationResourceLabels": {"a": "b"}}}
    many = {"classificationAnnotations": [{"displayName": "a"}, {"displayName": "b"}]}
    box = {"displayName": "cat", "xMin": 0, "yMin": 0.25, "xMax": 0.5, "yMax": "1"}
    assert read_vertex({"imageGcsUri": GCS, **one, **use}) == Entry(
        uri=GCS, label="daisy", split="test", fractions=True
    )
    assert read_vertex({"imageGcsUri": GCS, **many}) == Entry(uri=GCS, labels=["a", "b"], fractions=True)
    assert read_vertex({"imageGcsUri": GCS}) == Entry(uri=GCS, fractions=True)
    assert read_vertex({"imageGcsUri": GCS, "boundingBoxAnnotations": [{**box, "yMax": 1}]}) == Entry(
        uri=GCS, boxes=[[0.0, 0.25, 0.5, 1.0]], box_labels=["cat"], fractions=True
    )
    with pytest.raises(Rejected, match=r"column 'boundingBoxAnnotations.yMax': '1' \(str\) is not a number"):
        read_vertex({"imageGcsUri": GCS, "boundingBoxAnnotations": [box]})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"imageGcsUri": None}, "column 'imageGcsUri' is empty"),
        ({"dataItemResourceLabels": "test"}, "column 'dataItemResourceLabels': 'test' (str) is not a JSON object"),
        ({"classificationAnnotation": {}}, "column 'classificationAnnotation.displayName' is empty"),
        ({"classificationAnnotation": "a"}, "column 'classificationAnnotation': 'a' (str) is not a JSON object"),
        ({"classificationAnnotations": 7}, "column 'classificationAnnotations': 7 (int) is not a list"),
        ({"boundingBoxAnnotations": [{"displayName": "a"}]}, "column 'boundingBoxAnnotations.xMin' is empty"),
    ],
)
def test_lines_that_vertex_ai_would_not_take(more, message):
    with pytest.raises(Rejected) as raised:
        read_vertex({"imageGcsUri": GCS, **more})
    assert raised.value.detail == message


@pytest.mark.parametrize(
    ("row", "entry"),
    [
        ("TRAIN,p,daisy", Entry(uri="p", split="TRAIN", label="daisy", labels=["daisy"])),
        ("p,daisy", Entry(uri="p", label="daisy", labels=["daisy"])),
        (",p,daisy", Entry(uri="p", label="daisy", labels=["daisy"])),
        ("training, p ,daisy,,", Entry(uri="p", split="TRAINING", label="daisy", labels=["daisy"])),
        ("UNASSIGNED,p,a,b,a", Entry(uri="p", split="UNASSIGNED", labels=["a", "b"])),
        ("p,a,b,c,d,e,f,g,h,i", Entry(uri="p", labels=["a", "b", "c", "d", "e", "f", "g", "h", "i"])),
        (
            "TEST,p,cat,0.1,0.2,,,0.3,0.4,,",
            Entry(uri="p", split="TEST", boxes=[[0.1, 0.2, 0.3, 0.4]], box_labels=["cat"]),
        ),
        ("p,cat,.1,.2,.3,.2,.3,.4,.1,.4", Entry(uri="p", boxes=[[0.1, 0.2, 0.3, 0.4]], box_labels=["cat"])),
        ("TEST,p,,,,,,,,,", Entry(uri="p", split="TEST", boxes=[])),
    ],
)
def test_automl(row, entry):
    entry.fractions = True
    assert read_automl(row.split(",")) == entry


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("TRAIN", "there is no path in it"),
        ("TRAIN,,daisy", "there is no path in it"),
        ("TRAIN,p", "there is no label in it"),
        ("p,cat,0.1,,,,,,,", "its box needs a label and two opposite corners"),
        ("p,,0.1,0.2,,,0.3,0.4,,", "its box needs a label and two opposite corners"),
    ],
)
def test_rows_that_automl_would_not_take(row, message):
    with pytest.raises(Rejected, match=rf"^\w+: {message}$"):
        read_automl(row.split(","))
