"""`expect`: a dataset that is not as expected is not published; it stops ten kinds of faults, and
no sound dataset."""

import json
import os
import random
import re
import shlex
import shutil
from pathlib import Path

import pytest

from recordmill.pipeline.command import run_command
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from tests.pipeline.conftest import encode_picture, snapshot

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PAGE = Path(__file__).parents[2] / "docs" / "change.md"
FOLDERS = {"layout": "auto", "images": {"check": "header"}}
TAGS = {
    "source": {"kind": "manifest", "columns": {"uri": "path", "labels": "tags"}},
    "splits": {"fractions": {"train": 1.0}},
    "labels": {"ids": "integers"},
    "max_rejected": {"labels": {"share": 1}},
    "convention": {
        "features": {
            "encoded": {"field": "encoded", "type": "bytes"},
            "labels": {"field": "labels", "type": "int64", "shape": [None]},
        }
    },
}
BOXES = {
    "source": {"kind": "yolo"},
    "convention": "tf_object_detection",
    "splits": {"fractions": {"train": 1.0}},
    "max_rejected": {"boxes": {"share": 1}},
}
COUNTS = {"train": {"cat": 100, "dog": 80, "emu": 60}, "test": {"cat": 25, "dog": 20, "emu": 15}}


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def draw_animals(folder):
    names = [
        f"{split}/{label}/{number}.jpg"
        for split, counts in COUNTS.items()
        for label, count in counts.items()
        for number in range(count)
    ]
    write(folder, {name: encode_picture(name, (8, 8)) for name in names})


def draw_tagged(folder):
    rows = "".join(f"{number}.jpg,{number % 3}|{3 + number % 2}\n" for number in range(100))
    write(folder, {f"{number}.jpg": encode_picture(number, (8, 8)) for number in range(100)})
    write(folder, {"list.csv": f"path,tags\n{rows}".encode()})


def draw_boxes(folder):
    write(folder, {f"images/{number}.jpg": encode_picture(number, (8, 8)) for number in range(100)})
    write(
        folder,
        {
            f"labels/{number}.txt": f"{number % 2} 0.4 0.5 0.2 0.3\n".encode()
            for number in range(100)
        },
    )
    write(folder, {"data.yaml": b"names: [ship, boat]\n"})


COLLECTIONS = {
    "animals": (
        draw_animals,
        FOLDERS | {"splits": {"from_folders": {"train": "train", "test": "test"}}},
    ),
    "tagged": (draw_tagged, TAGS),
    "boxes": (draw_boxes, BOXES),
}


def truncate(root, chance):
    for path in chance.sample(sorted(root.rglob("*.jpg")), 8):
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content[: len(content) // 2])


def lose_a_class(root, chance):
    label = chance.choice(["cat", "dog", "emu"])
    for split in COUNTS:
        shutil.rmtree(root / split / label)


def misspell_a_class(root, chance):
    label = chance.choice(["cat", "dog", "emu"])
    for path in chance.sample(sorted((root / "train" / label).iterdir()), 5):
        (root / "train" / f"{label}s").mkdir(exist_ok=True)
        path.rename(root / "train" / f"{label}s" / path.name)


def stop_copying(root, chance):
    found = sorted((root / "train").rglob("*.jpg"))
    for path in found[chance.randrange(100, 180) :]:
        path.unlink()


def lose_most_of_a_class(root, chance):
    found = sorted((root / "train" / "emu").iterdir())
    for path in chance.sample(found, chance.randrange(36, 48)):
        path.unlink()


def label_wrongly(root, chance):
    source, target = chance.sample(["cat", "dog", "emu"], 2)
    for path in chance.sample(sorted((root / "train" / source).iterdir()), 45):
        path.rename(root / "train" / target / f"moved-{path.name}")


def leak_test_images(root, chance):
    for path in chance.sample(sorted((root / "test").rglob("*.jpg")), 3):
        shutil.copy(path, root / "train" / path.parent.name / f"leaked-{path.name}")


def import_twice(root, chance):
    split = chance.choice(sorted(COUNTS))
    for path in sorted((root / split).rglob("*.jpg")):
        shutil.copy(path, path.with_name(f"again-{path.name}"))


def shift_boxes(root, chance):
    for path in chance.sample(sorted((root / "labels").iterdir()), 20):
        path.unlink()
        path.write_text("0 1.4 1.3 0.2 0.3\n", encoding="utf-8")


def write_words_for_ids(root, chance):
    head, *rows = (root / "list.csv").read_text(encoding="utf-8").splitlines()
    for number in chance.sample(range(len(rows)), 10):
        rows[number] = rows[number].rpartition("|")[0] + "|red"
    (root / "list.csv").unlink()
    (root / "list.csv").write_text("\n".join([head, *rows, ""]), encoding="utf-8")


COMPARE = r"`recordmill diff \S+ \S+` lists what is new, missing or changed$"

FAULTS = {
    truncate: ("animals", "expect.rejected", r"truncated: t\w+/\w+/\d+\.jpg \("),
    lose_a_class: ("animals", "expect.classes", COMPARE),
    misspell_a_class: (
        "animals",
        "expect.classes",
        r"an image of the class (cat|dog|emu)s: train/\1s/\d+\.jpg$",
    ),
    stop_copying: ("animals", "expect.images.*.change", COMPARE),
    lose_most_of_a_class: ("animals", "expect.images.train/*.change", COMPARE),
    label_wrongly: ("animals", "expect.class_drift", COMPARE),
    leak_test_images: (
        "animals",
        "expect.duplicates_across_splits",
        r"identical: test/\S+ \(test\), train/\w+/leaked-\S+ \(train\)$",
    ),
    import_twice: ("animals", "expect.images.*.change", COMPARE),
    shift_boxes: ("boxes", "expect.lost_boxes", r"outside: box 1 of 1 of images/\d+\.jpg \("),
    write_words_for_ids: ("tagged", "expect.lost_labels", r"unknown_label: \d+\.jpg \("),
}
"""Ten kinds of faults: the collection that each is made in, a key that must find it, and a line of
the message that leads to its cause."""


def run(configuration, root, output, *flags):
    places = [f"--input={root}", f"--output={output}", f"--config={configuration}"]
    return launch([*places, "--set=report=false", *flags], build)


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """`nights(name)`: a collection, its dataset, and its configuration with the contract of
    docs/change.md."""
    (block,) = re.findall(
        r"^```yaml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    made = {}

    def make(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            draw, settings = COLLECTIONS[name]
            draw(folder / "input")
            text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items())
            (folder / "own.yaml").write_text(text + block, encoding="utf-8")
            assert run(folder / "own.yaml", folder / "input", folder / "dataset") == 0
            made[name] = folder
        return made[name]

    return make


def copy_links(root, target):
    return shutil.copytree(root, target, copy_function=os.link)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_documented_contract_stops_each_kind_of_fault(nights, capsys, tmp_path, fault, seed):
    name, key, clue = FAULTS[fault]
    night = nights(name)
    changed = copy_links(night / "input", tmp_path / "input")
    fault(changed, random.Random(seed))
    capsys.readouterr()
    flags = [f"--against={night / 'dataset'}", "--set=report=true"]
    code = run(night / "own.yaml", changed, tmp_path / "dataset", *flags)
    said = capsys.readouterr().err
    assert code == 4, said
    assert re.search(rf"^error: .*{re.escape(key)}", said, re.MULTILINE), said
    assert re.search(rf"^error: {clue}", said, re.MULTILINE), said
    assert not (tmp_path / "dataset" / "recordmill.json").exists()


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 50))]
)
def test_a_bootstrap_of_the_same_images_raises_no_alarm(nights, capsys, tmp_path, seed):
    night, chance = nights("animals"), random.Random(f"bootstrap {seed}")
    for split in COUNTS:
        found = sorted((night / "input" / split).rglob("*.jpg"))
        for number, path in enumerate(chance.choices(found, k=len(found))):
            target = tmp_path / "input" / split / path.parent.name
            target.mkdir(parents=True, exist_ok=True)
            os.link(path, target / f"{number}.jpg")
    code = run(
        night / "own.yaml",
        tmp_path / "input",
        tmp_path / "dataset",
        f"--against={night / 'dataset'}",
    )
    assert code == 0, capsys.readouterr().err


CLASSES = {"expect.classes": "as_before", "expect.images": {"*": {"change": 20}}}


def test_a_breach_leaves_the_previous_dataset_and_a_higher_limit_publishes_the_finished_shards(
    convert, photos
):
    first = convert(photos, settings=CLASSES)
    note = "no previous dataset was found: expect compared nothing with one"
    assert (first.code, first.line["notes"]) == (0, [note])
    before = snapshot(first.output)
    for number in range(10):
        (photos / "dog" / f"new-{number}.jpg").write_bytes(encode_picture(number))
    broken = convert(photos, "--overwrite", settings=CLASSES)
    advice = (
        "nothing was published: correct the input, or accept the dataset with --set "
        '\'expect.images={"*":{"change":100}}\' (docs/fix_rejected.md explains both)'
    )
    (staging,) = broken.staging
    assert broken.answer == (
        4,
        "split test has 2 images, the previous dataset has 1, and expect.images.*.change is 20%",
        "split train has 18 images, the previous dataset has 9, and expect.images.*.change is 20%",
        f"`recordmill diff {first.output} {staging}` lists what is new, missing or changed",
        advice,
        f"{staging}/report.html shows what was converted",
    )
    assert broken.line["status"] == "failed"
    there = {
        name: each
        for name, each in snapshot(first.output).items()
        if not name.startswith(staging.name)
    }
    assert there == before
    finished = {path.name: path.stat().st_ino for path in staging.glob("*.tfrecord")}
    raised = convert(
        photos, "--overwrite", settings={**CLASSES, "expect.images": {"*": {"change": 100}}}
    )
    assert (raised.code, raised.line["status"]) == (0, "published")
    assert (
        raised.line["notes"][-1]
        == f"{len(finished)} of {len(finished)} shards had been finished by an earlier run"
    )
    assert {path.stat().st_ino for path in raised.shards()} == set(finished.values())
    assert raised.line["ledger"]["written"] == 20


def test_the_printed_comparison_lists_what_changed(convert, photos, capsys):
    convert(photos, settings=CLASSES)
    (photos / "dog/00.jpg").unlink()
    (photos / "emu").mkdir()
    (photos / "emu/new.jpg").write_bytes(encode_picture("new"))
    broken = convert(photos, "--overwrite", settings=CLASSES)
    (command,) = re.findall(r"`recordmill (diff .*)` lists", broken.stderr)
    assert run_command([*shlex.split(command), "--json"], build) == 1
    line = json.loads(capsys.readouterr().out)
    assert line["examples"] == {"added": ["emu/new.jpg"], "removed": ["dog/00.jpg"]}


def test_work_without_a_report_is_refused_by_the_comparison(convert, photos, capsys):
    first = convert(photos, settings=CLASSES)
    (photos / "dog/00.jpg").unlink()
    settings = {**CLASSES, "expect.images": {"*": {"at_least": 99}}, "report": False}
    broken = convert(photos, "--overwrite", settings=settings)
    assert "recordmill diff" not in broken.stderr
    (staging,) = broken.staging
    assert run_command(["diff", str(first.output), str(staging)], build) == 2
    assert "error: " in capsys.readouterr().err


def test_the_night_after_a_breach_needs_nothing_done(convert, photos, tmp_path):
    convert(photos, settings=CLASSES)
    away = (photos / "cat").rename(tmp_path / "away")
    broken = convert(photos, "--overwrite", settings=CLASSES)
    assert broken.answer[:2] == (
        4,
        "no image is of the class cat, which expect.classes (as_before) requires",
    )
    away.rename(photos / "cat")
    (photos / "dog" / "new.jpg").write_bytes(encode_picture("new"))
    (staging,) = broken.staging
    repaired = convert(photos, "--overwrite", settings=CLASSES)
    assert (repaired.code, repaired.line["ledger"]["written"], repaired.staging) == (0, 11, [])
    assert repaired.line["notes"] == [
        f"deleted {staging.name}, which another run had left: no run will resume from it"
    ]


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        (
            {"expect.classes": ["cat"]},
            (
                4,
                "the class dog is not in expect.classes",
                "an image of the class dog: dog/03.jpg",
                "nothing was published: correct the input, or accept the dataset with --set "
                "'expect.classes=[cat, dog]' (docs/fix_rejected.md explains both)",
            ),
        ),
        (
            {"max_rejected.count": 0, "max_rejected.share": 0.01},
            (
                3,
                "1 of 11 images (9.09%) was rejected (1 unknown_format), which is over "
                "max_rejected.count (0) and max_rejected.share (1.00%)",
                "unknown_format: cat/broken.jpg (unknown format: the file begins with 6e 6f 20 70 "
                "69 63 74 75 ('no picture'))",
                "{output}/rejected.jsonl lists it",
                "correct what was rejected, or leave it out with --set 'ignore=[/cat/broken.jpg]', "
                "or accept the loss with --set max_rejected.count=1",
                "docs/fix_rejected.md has a remedy for each reason",
            ),
        ),
    ],
)
@pytest.mark.parametrize("flags", [["--overwrite"], ["--plan"]])
def test_a_dataset_that_is_there_is_held_to_the_limits_too(
    convert, photos, settings, answer, flags
):
    (photos / "cat/broken.jpg").write_bytes(b"no picture")
    first = convert(photos, settings={"report": False})
    before = snapshot(first.output)
    again = convert(photos, *flags, settings={"report": False, **settings})
    code, *lines = answer
    lines = [each.replace("{output}", str(first.output)) for each in lines]
    assert again.answer == (code, *lines)
    assert (again.line["status"], snapshot(first.output)) == ("failed", before)


def test_a_kept_dataset_is_rid_of_the_work_of_a_breach(convert, photos):
    convert(photos, settings=CLASSES)
    (photos / "dog" / "new.jpg").write_bytes(encode_picture("new"))
    (staging,) = convert(photos, "--overwrite", settings={"expect.classes": ["cat"]}).staging
    (photos / "dog" / "new.jpg").unlink()
    kept = convert(photos, "--overwrite", settings=CLASSES)
    assert (kept.line["status"], kept.staging) == ("kept", [])
    assert (
        f"deleted {staging.name}, which another run had left: no run will resume from it"
        in kept.line["notes"]
    )


def test_the_contract_changes_no_plan(convert, photos, tmp_path):
    plain = convert(photos, settings={})
    held = convert(photos, output=tmp_path / "held", settings={**CLASSES, "expect.rejected": 0})
    assert held.marker["plan"]["id"] == plain.marker["plan"]["id"]
    assert held.deterministic_files == plain.deterministic_files


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ["--set=expect.classes=as_before", "--against=nowhere"],
            "--against: nowhere holds no finished dataset: name one, or remove the flag",
        ),
        (
            ["--set=expect.classes=as_before", f"--against={__file__}"],
            f"--against: {__file__} holds no finished dataset: name one, or remove the flag",
        ),
        (
            ["--set=expect.classes=[cat]", "--against=nowhere"],
            "--against has no effect, since nothing in expect is compared with a previous dataset",
        ),
        (
            ["--set=expect.images.tst.at_least=1"],
            "--set: expect.images.tst names the split tst, which does not exist: correct it",
        ),
        (
            [
                "--set=expect.images={train/cat: {at_least: 1_001, at_most: 1_000}, test: "
                "{at_least: 5, at_most: 5}}"
            ],
            "--set: expect.images.train/cat.at_least is 1,001, and at_most is 1,000: correct one "
            "of them",
        ),
        (
            ["--set=expect.images.*={at_least: 1, at_most: 0}"],
            "--set: expect.images.*.at_least is 1, and at_most is 0: correct one of them",
        ),
        (
            ["--set=expect.classes=as_it_was"],
            "--set: expect.classes is 'as_it_was': it should be a list, such as [1, 2] or be "
            "'as_before'",
        ),
    ],
)
def test_expectations_without_effect_are_refused(convert, photos, flags, sentence):
    assert convert(photos, *flags).answer == (2, sentence)
