import io
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from stored_records import read_records

from recordmill.schemas.features import Feature, parse_example

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

LABELS = {
    "a/1.jpg": ("daisy", "train"),
    "a/2.jpg": ("rose, red", "train"),
    "b/3.jpg": ("daisy", "test"),
}


@pytest.fixture
def folder(tmp_path):
    for number, path in enumerate(LABELS):
        (tmp_path / "flowers" / path).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 12), (60 * number, 90, 90)).save(tmp_path / "flowers" / path)
    images = {path: (tmp_path / "flowers" / path).read_bytes() for path in LABELS}
    write_parquet(tmp_path / "flowers.parquet", images)
    write_imports(tmp_path / "flowers")
    (tmp_path / "flowers" / "masks").mkdir()
    for number in (1, 2, 3):
        mask = Image.new("L", (16, 12), number)
        mask.save(tmp_path / "flowers" / "masks" / f"{number}.png")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "flowers.csv").write_text(
        "path,class,split,patient,age\n"
        'a/1.jpg,daisy,train,p,1\na/2.jpg,"rose, red",train,p,2\nb/3.jpg,daisy,test,q,3\n',
        encoding="utf-8",
    )
    for split in ("train", "validation", "test"):
        shutil.copytree(tmp_path / "flowers" / "a", tmp_path / "folder" / split)
        text = f"file_name,label,text\n1.jpg,daisy,{split}\n"
        (tmp_path / "folder" / split / "metadata.csv").write_text(text, encoding="utf-8")
    (tmp_path / "boxes").mkdir()
    Image.new("RGB", (16, 12)).save(tmp_path / "boxes" / "1.jpg")
    return tmp_path


def write_parquet(path, images):
    names = ["rose, red", "daisy"]
    rows = [
        {
            "image": {"bytes": images[name], "path": name},
            "label": names.index(label),
            "split": split,
        }
        for name, (label, split) in LABELS.items()
    ]
    said = {"info": {"features": {"label": {"names": names, "_type": "ClassLabel"}}}}
    table = pa.Table.from_pylist(rows)
    pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(said)}), path)


def write_imports(folder):
    lines, rows = [], []
    uses = {"train": "training", "test": "test"}
    for path, (label, split) in [*LABELS.items()]:
        use = {"aiplatform.googleapis.com/ml_use": uses[split]}
        lines.append(
            {
                "imageGcsUri": path,
                "classificationAnnotation": {"displayName": label},
                "dataItemResourceLabels": use,
            }
        )
        rows.append(f'{split.upper()},{path},"{label}"')
    # The shipped configurations ask for a validation split too.
    Image.new("RGB", (16, 12)).save(folder / "4.jpg")
    lines.append(
        {
            "imageGcsUri": "4.jpg",
            "classificationAnnotation": {"displayName": "daisy"},
            "dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "validation"},
        }
    )
    rows.append("VALIDATION,4.jpg,daisy")
    (folder / "import.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (folder / "import.csv").write_text("\n".join(rows), encoding="utf-8")


def read(output, *features):
    found = []
    wanted = (
        Feature("image/class/text", "bytes", "", ""),
        *(Feature(key, kind, "", "") for key, kind in features),
    )
    for path in output.glob("*.tfrecord"):
        for record in read_records(str(path)):
            values = parse_example(wanted, bytes(record))
            found.append(
                (path.name.partition("-")[0], *(values[feature.key] for feature in wanted))
            )
    return sorted(found)


def read_boxes(output):
    sides = [
        Feature(f"image/object/bbox/{side}", "float", "", "", many=True)
        for side in ("xmin", "ymin", "xmax", "ymax")
    ]
    wanted = (Feature("image/object/class/text", "bytes", "", "", many=True), *sides)
    for path in output.glob("*.tfrecord"):
        for record in read_records(str(path)):
            yield tuple(parse_example(wanted, bytes(record)).values())


def read_masks(output):
    """The split and the only id of each semantic mask."""
    wanted = [Feature("image/segmentation/class/encoded", "bytes", "", "")]
    found = []
    for path in output.glob("*.tfrecord"):
        for record in read_records(str(path)):
            (mask,) = parse_example(wanted, bytes(record)).values()
            ((_, only),) = Image.open(io.BytesIO(mask)).getcolors()
            found.append((path.name.partition("-")[0], only))
    return sorted(found)


def test_the_page_does_what_it_says(folder, run_page):
    run_page("docs/manifests.md", folder)
    age = ("image/age", "int64")
    assert read(folder / "flowers-dataset", age) == [
        ("test", b"daisy", 12),
        ("train", b"daisy", 3),
        ("train", b"rose, red", -1),
    ]
    assert read_masks(folder / "from-masks") == [("test", 3), ("train", 1), ("train", 2)]
    (found,) = read_boxes(folder / "from-objects")
    assert found == ([b"dog"], [0.0], [0.0], [0.5], [float(np.float32(8 / 12))])
    assert sorted(read_boxes(folder / "from-boxes")) == [
        ([b"daisy", b"rose"], [0.0, 0.5], [0.0, 0.5], [0.5, 1.0], [1.0, 1.0]),
        ([b"rose"], [0.25], [0.25], [0.75], [0.75]),
    ]
    assert read(folder / "from-lists") == [
        ("test", b"daisy"),
        ("train", b"daisy"),
        ("train", b"rose"),
    ]
    assert read(folder / "rooted", age) == [
        ("test", b"daisy", 3),
        ("train", b"daisy", 1),
        ("train", b"rose, red", 2),
    ]
    plain = [("test", b"daisy"), ("train", b"daisy"), ("train", b"rose, red")]
    assert read(folder / "from-parquet") == plain
    marker = json.loads((folder / "from-parquet" / "recordmill.json").read_text(encoding="utf-8"))
    assert marker["labels"] == {"rose, red": 0, "daisy": 1}
    assert (
        read(folder / "from-vertex")
        == read(folder / "from-automl")
        == [*plain, ("validation", b"daisy")]
    )
    assert read(folder / "from-imagefolder", ("image/caption", "bytes")) == [
        (split, b"daisy", split.encode()) for split in ("test", "train", "validation")
    ]
