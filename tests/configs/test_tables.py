"""Tables without images, from one command to the readers that their authors use."""

import csv
import json
import random
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.reading.dataset import open_dataset
from recordmill.reading.example import examples_as_numpy
from recordmill.schemas.features import tensorflow_features

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

WORDS = ["cat", "dog", "chicken", "horse", "goat"]


def observations(count):
    """The tutorial's: a truth value, a whole number, a text, a fraction."""
    rng = random.Random(0)
    for _ in range(count):
        number = rng.randrange(5)
        yield {
            "feature0": rng.random() < 0.5,
            "feature1": number,
            "feature2": WORDS[number],
            "feature3": rng.gauss(0, 1),
        }


def write_csv(folder, rows):
    with (folder / "observations.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_jsonl(folder, rows):
    (folder / "observations.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def write_parquet(folder, rows):
    pq.write_table(pa.Table.from_pylist(rows), folder / "observations.parquet", row_group_size=1000)


WRITERS = [write_csv, write_jsonl, write_parquet]


def as_features(row):
    """What an Example must hold of a row."""
    return {
        "feature0": [int(row["feature0"])],
        "feature1": [row["feature1"]],
        "feature2": [row["feature2"].encode()],
        "feature3": [float(np.float32(row["feature3"]))],
    }


@pytest.mark.parametrize("write", WRITERS)
def test_seed_3_each_form_of_a_table_gives_the_same_examples(write, tmp_path, convert):
    folder = tmp_path / "table"
    folder.mkdir()
    rows = list(observations(200))
    write(folder, rows)
    marker, found = convert("observations.yaml", folder)
    assert marker["ledger"]["written"] == 200
    assert {key: (each["kind"], each["shape"]) for key, each in marker["features"].items()} == {
        "feature0": ("int64", []),
        "feature1": ("int64", []),
        "feature2": ("bytes", []),
        "feature3": ("float", []),
    }
    examples = [example for part in found.values() for example in part]
    assert sorted(sorted(example.items()) for example in examples) == sorted(
        sorted(as_features(row).items()) for row in rows
    )


def key_of(example):
    return tuple(np.asarray(example[f"feature{number}"]).item() for number in range(4))


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_seed_3_observations_are_read_back_in_python_and_with_tf_data(tmp_path, convert, count):
    tf = pytest.importorskip("tensorflow")
    folder = tmp_path / "table"
    folder.mkdir()
    rows = list(observations(count))
    write_csv(folder, rows)
    marker, _ = convert("observations.yaml", folder)
    expected = sorted(tuple(values[0] for values in as_features(row).values()) for row in rows)
    output = tmp_path / "dataset-of-observations.yaml"
    files = [
        str(output / shard["name"])
        for split in marker["splits"].values()
        for shard in split["shards"]
    ]
    assert sorted(key_of(each) for file in files for each in examples_as_numpy(file)) == expected

    defaults = {
        "feature0": tf.io.FixedLenFeature([], tf.int64, default_value=0),
        "feature1": tf.io.FixedLenFeature([], tf.int64, default_value=0),
        "feature2": tf.io.FixedLenFeature([], tf.string, default_value=""),
        "feature3": tf.io.FixedLenFeature([], tf.float32, default_value=0.0),
    }
    singles = tf.data.TFRecordDataset(files).map(
        lambda record: tf.io.parse_single_example(record, defaults)
    )
    assert sorted(map(key_of, singles.as_numpy_iterator())) == expected

    stated = tensorflow_features(open_dataset(str(output)).marker.example_features)
    batches = (
        tf.data.TFRecordDataset(files)
        .batch(512)
        .map(lambda records: tf.io.parse_example(records, stated))
    )
    found = []
    for batch in batches.as_numpy_iterator():
        found += zip(*(batch[f"feature{number}"].tolist() for number in range(4)), strict=True)
    assert sorted(found) == expected


def test_seed_3_undeclared_types_are_inferred_and_recorded(tmp_path, convert, capsys):
    folder = tmp_path / "table"
    folder.mkdir()
    write_csv(folder, [{**row, "nothing": ""} for row in observations(50)])
    (folder / "notes.txt").write_text("no table", encoding="utf-8")
    found, examples = convert("observations.yaml", folder, "--set", "source.columns={}")
    note = (
        "note: column 'nothing' has no value in any row and is left out: declare "
        "source.columns.nothing to keep it\n"
    )
    assert note in capsys.readouterr().err
    again = tmp_path / "dataset-of-observations.yaml" / "config.yaml"
    assert found["ledger"]["ignored"] == {"not_included": 1}
    output = tmp_path / "again"
    assert launch([f"--config={again}", f"--input={folder}", f"--output={output}"], build) == 0
    declared = json.loads((output / "recordmill.json").read_text(encoding="utf-8"))
    assert (declared["plan"]["id"], declared["features"]) == (
        found["plan"]["id"],
        found["features"],
    )
    assert all(
        set(example) == {f"feature{number}" for number in range(4)} for example in examples["train"]
    )


def test_lists_labels_and_lacking_values(tmp_path, convert):
    folder = tmp_path / "table"
    folder.mkdir()
    rows = [
        {"id": "a", "kind": "rose", "v": [0.5, 1.5], "n": 1},
        {"id": "b", "kind": "iris", "v": []},
        {"id": "c", "kind": "rose"},
        {"id": "d", "kind": "iris", "v": [2.5], "n": "x"},
    ]
    write_jsonl(folder, rows)
    columns = "{v: 'float[]', n: {type: int, default: -1}}"
    own = "{features: {class: {type: int64, field: label}, name: {type: bytes, field: key}}}"
    marker, found = convert(
        "observations.yaml",
        folder,
        *(
            "--set",
            f"source.columns={columns}",
            "--set",
            "source.label=kind",
            "--set",
            "source.key=id",
        ),
        *("--set", f"convention={own}", "--set", "splits.fractions={train: 1}"),
    )
    assert sorted(found["train"], key=lambda each: each["name"]) == [
        {"name": [b"a"], "class": [1], "v": [0.5, 1.5], "n": [1]},
        {"name": [b"b"], "class": [0], "v": []},
        {"name": [b"c"], "class": [1]},
    ]
    assert marker["ledger"]["rejected"] == {"bad_row": 1}
    assert marker["labels"] == {"iris": 0, "rose": 1}
    rejected = (tmp_path / "dataset-of-observations.yaml" / "rejected.jsonl").read_text(
        encoding="utf-8"
    )
    assert (
        json.loads(rejected)["detail"]
        == "observations.jsonl, row 4: column 'n': 'x' is not of type int"
    )
    tfds = json.loads(
        (tmp_path / "dataset-of-observations.yaml" / "features.json").read_text(encoding="utf-8")
    )
    assert set(tfds["featuresDict"]["features"]) == {"name", "class", "v"}  # some row has no n


@pytest.mark.parametrize(
    ("content", "settings", "code", "sentence"),
    [
        (
            "a\n1\n",
            (),
            1,
            "the table t.csv cannot be used: it has no column 'feature0' "
            "(source.columns.feature0), only",
        ),
        (
            "a\n1\n",
            ("--set", "convention=default"),
            2,
            "stores images (image/encoded), and none is decoded",
        ),
        (
            "label\n1\n",
            ("--set", "source.columns={label: int}"),
            2,
            "source: the feature name 'label' is taken",
        ),
        (
            "label\n1\n",
            ("--set", "source.columns={}"),
            2,
            "source: the feature name 'label' is taken",
        ),
        (
            "a,a\n1,1\n",
            ("--set", "source.columns={}"),
            2,
            "source: t.csv cannot be read: it has 2 columns 'a'",
        ),
        (
            "a\n1\n",
            ("--set", "source.columns={a: date}"),
            2,
            "source.columns.a.type is 'date': write one of",
        ),
        ("a\n1\n", ("--set", "source.columns={a: {type: int, tpye: 1}}"), 2, "source.columns.a"),
    ],
)
def test_errors_are_one_sentence(content, settings, code, sentence, tmp_path, capsys):
    folder = tmp_path / "table"
    folder.mkdir()
    (folder / "t.csv").write_text(content, encoding="utf-8")
    arguments = [
        "--config=configs/observations.yaml",
        f"--input={folder}",
        f"--output={tmp_path / 'out'}",
        *settings,
    ]
    assert launch(arguments, build) == code
    reported = json.loads(capsys.readouterr().out)["message"]
    assert sentence in reported
    assert not list(tmp_path.glob("out/*.tfrecord"))


def test_messages_about_tables_count_rows(tmp_path, convert, capsys):
    rows = [
        *observations(40),
        {"feature0": "maybe", "feature1": 1, "feature2": "cat", "feature3": 0.5},
    ]
    write_csv(tmp_path, [*rows[:3], *rows])
    marker, _ = convert("observations.yaml", tmp_path / "observations.csv")
    out, err = capsys.readouterr()
    assert marker["unit"] == json.loads(out)["unit"] == "row"
    said = [" ".join(line.split()) for line in err.splitlines()]
    assert "split rows shards bytes" in said
    assert any(line.startswith("duplicates 3 repeated rows (") for line in said)
    assert any(line.startswith("43 rows are in ") for line in said)
    folder = tmp_path / "dataset-of-observations.yaml"
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "\n43 rows, in 2 TFRecord files" in card
    assert "Each row is one `tf.train.Example`" in card
    assert "`bad_row`: its row of a table or manifest is malformed" in card
    croissant = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    assert [each["@id"] for each in croissant["recordSet"]] == ["rows-train", "rows-test"]
    report = re.sub(
        r"<style>.*?</style>|<pre>.*?</pre>",
        "",
        (folder / "report.html").read_text(),
        flags=re.DOTALL,
    )
    assert "43 rows" in report
    info = (folder / "dataset_info.json").read_text()
    for text in (err, card, json.dumps(croissant), info, report):
        assert not re.search(
            r"\b[Ii]mages?\b(?!/)", text.replace("default-src 'none'; img-src data:", "")
        ), text
