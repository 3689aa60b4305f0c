"""Every value of a real marker is changed in turn: what `verify` finds, and the list of what
nothing can confirm."""

import copy
import hashlib
import io
import json
import os
import random
import shutil
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from PIL import Image

from recordmill.pipeline.inspect import summary_view
from recordmill.reading.dataset import describe_split, open_dataset
from recordmill.reading.inspect_dataset import summarize_dataset
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.schemas.errors import LoadError

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

UNCONFIRMED = {
    "named.files",
    "duplicates.look_alike.bits",
    "duplicates.look_alike.complete",
    *(
        f"run.{key}"
        for key in (
            "recordmill",
            "beam",
            "runner",
            "id",
            "versions",
            "finished",
        )
    ),
    *(f"run.seconds.{stage}" for stage in ("listing", "converting", "publishing")),
    "run.shards_reused",
    "run.images_reused",
}
"""What is true of the run or meant for people: nothing else in a dataset says it."""


def draw(seed):
    stream = io.BytesIO()
    Image.frombytes("RGB", (6, 4), random.Random(f"{seed}").randbytes(72)).resize((48, 32)).save(
        stream, "JPEG"
    )
    return stream.getvalue()


@pytest.fixture(scope="module")
def annotated(tmp_path_factory, convert_images):
    """A dataset whose marker says as much as one can: boxes of all fates, rejections, duplicates,
    ignored files."""
    folder = tmp_path_factory.mktemp("annotated")
    for split in ("train", "val"):
        images = [
            {"id": n, "file_name": f"{split}-{n}.jpg", "width": 48, "height": 32} for n in range(6)
        ]
        fates = [[1, 2, 9, 8], [40, 20, 30, 30], [1, 1, 0, 5]]  # inside, sticking out, empty
        boxes = [
            {
                "id": 10 * n + at,
                "image_id": n,
                "category_id": (n + at) % 2 + 1,
                "bbox": box,
                "iscrowd": 0,
            }
            for n in range(4)
            for at, box in enumerate(fates if n != 3 else fates[2:])
        ]
        categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
        text = json.dumps({"images": images, "annotations": boxes, "categories": categories})
        (folder / "annotations").mkdir(exist_ok=True)
        (folder / "annotations" / f"instances_{split}2017.json").write_text(text)
        (folder / split).mkdir()
        for n in range(6):
            (folder / split / f"{split}-{n}.jpg").write_bytes(
                draw(0 if n == 0 else (split, n)) if n != 5 else b"no picture"
            )
        (folder / split / "notes.txt").write_text("mine")
    settings = {
        "source.kind": "coco",
        "source.split": "instances_(?P<split>train|val)2017[.]json",
        "source.images": "{split}",
        "splits.from_source": {"train": "train", "val": "val"},
        "convention": "tf_object_detection",
        "images.near_duplicates": True,
        "images.reencode": "always",
        "name": "animals",
        "max_rejected.boxes": {"share": 1, "count": 100},
    }
    return convert_images(folder, tmp_path_factory.mktemp("out") / "annotated", settings)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all values that hold no others."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in inner:
        yield from places(each, (*path, key))
    if not inner:
        yield path


def one_of_each(
    paths: Iterable[tuple[str | int, ...]],
) -> list[tuple[str | int, ...]]:
    """One place of each kind: the same code reads it in another split, or further on in a list."""
    found = {
        tuple("" if isinstance(key, int) or key in ("train", "val") else key for key in path): path
        for path in paths
    }
    return [*found.values()]


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value[:-1]}{'0' if value[-1:] != '0' else '1'}"
    return {dict: {"more": 1}, list: ["more"], type(None): 7}[type(value)]


def change(marker, path, rename=False):
    changed = copy.deepcopy(marker)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if rename:
        inner[f"{path[-1]}x"] = inner.pop(path[-1])
    else:
        inner[path[-1]] = other(inner[path[-1]])
    return changed


def find(folder, marker, original):
    (folder / "recordmill.json").write_text(json.dumps(marker))
    try:
        findings = verify_dataset(open_dataset(str(folder)), threads=1).findings
        return [str(finding) for finding in findings if finding.kind != "duplicate"]
    except LoadError as error:
        return [str(error)]
    finally:
        (folder / "recordmill.json").write_bytes(original)


def is_unconfirmed(path):
    return (
        ".".join(map(str, path[:2])) in UNCONFIRMED
        or path[0] in UNCONFIRMED
        or ".".join(map(str, path)) in UNCONFIRMED
    )


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_every_value_of_a_marker_is_confirmed_or_on_the_list(annotated, step):
    original = (annotated / "recordmill.json").read_bytes()
    marker = json.loads(original)
    assert find(annotated, marker, original) == []
    paths = one_of_each(places(marker))[::step]
    assert len(paths) > 100 / step
    unnoticed = [path for path in paths if not find(annotated, change(marker, path), original)]
    assert [path for path in unnoticed if not is_unconfirmed(path)] == []
    assert [path for path in paths if is_unconfirmed(path) and path not in unnoticed] == []


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (
            ["splits", "train"],
            "recordmill.json: it contradicts itself: the split trainx is not in its settings",
        ),
        (
            ["labels", "cat"],
            "recordmill.json: it contradicts itself: labels does not match its settings",
        ),
        (["ledger", "rejected", "unknown_format"], "ledger.rejected.unknown_formatx: 2 -> not set"),
        (["splits", "val", "classes", ""], "splits.val.classes.x: 5 -> not set"),
        (["splits", "val", "instances", "dog"], "splits.val.instances.dogx: 3 -> not set"),
        (["annotations", "boxes", "dropped", "empty"], "boxes.dropped.emptyx: 8 -> not set"),
        (["annotations", "boxes", "noted", "clipped"], "boxes.noted.clippedx: 6 -> not set"),
        (
            ["annotations", "boxes", "dropped_classes", "empty"],
            "annotations.boxes.dropped_classes.emptyx: 8 -> not set",
        ),
        (["changes", "reencoded"], "changes.reencodedx: 10 -> not set"),
        (
            ["features", "image/encoded"],
            "recordmill.json: it contradicts itself: features does not match its settings",
        ),
        (
            ["run", "digests", "labels.txt"],
            "recordmill.json: it contradicts itself: files lacks labels.txtx",
        ),
        (
            ["plan", "recipe", "plan_version"],
            "recordmill.json: it contradicts itself: plan.id does not match its settings",
        ),
    ],
)
def test_a_name_that_was_changed_in_a_marker_is_found(annotated, path, found):
    original = (annotated / "recordmill.json").read_bytes()
    lines = find(annotated, change(json.loads(original), path, rename=True), original)
    assert any(line.endswith(found) for line in lines), lines


def test_kinds_and_keys_of_a_later_version_are_ignored(annotated):
    original = (annotated / "recordmill.json").read_bytes()
    marker = json.loads(original)
    marker["annotations"]["tracks"] = {"listed": 14, "written": 13, "dropped": {"empty": 1}}
    marker["annotations"]["boxes"]["further"] = 1
    marker["made_from"][0]["further"] = marker["further"] = ["x"]
    marker["run"]["recordmill"] = "9.9"
    assert find(annotated, marker, original) == []
    (annotated / "recordmill.json").write_text(json.dumps(marker))
    try:
        dataset = open_dataset(str(annotated))
        assert dataset.marker.annotations["tracks"].written == 13
        assert summarize_dataset(dataset).splits["train"].records == 5
    finally:
        (annotated / "recordmill.json").write_bytes(original)


def test_an_emptied_list_of_files_is_found(annotated):
    original = (annotated / "recordmill.json").read_bytes()
    marker = json.loads(original)
    names = sorted(marker["files"])
    for without_digests in (False, True):
        marker["files"] = []
        if without_digests:
            del marker["run"]["digests"]
            names = ["config.yaml", "duplicates.jsonl", "labels.txt", "records.index"]
            names += ["records.versions", "rejected.jsonl"]
        lines = find(annotated, marker, original)
        assert lines[: len(names)] == [
            f"recordmill.json: it contradicts itself: files lacks {name}" for name in names
        ]


def test_contradictions_are_reported_up_to_a_number(annotated):
    original = (annotated / "recordmill.json").read_bytes()
    marker = json.loads(original)
    marker["splits"]["val"]["classes"] = {f"{number}": 1 for number in range(200)}
    lines = find(annotated, marker, original)
    assert (len(lines), lines[-1]) == (101, "recordmill.json: 101 further contradictions")


def test_a_forged_sidecar_is_reported_and_raises_nothing(annotated, tmp_path):
    folder = shutil.copytree(annotated, tmp_path / "forged")
    marker = json.loads((folder / "recordmill.json").read_bytes())
    for number, forged in enumerate(
        ['{"offset": 0, "bytes": "a", "class": [], "changes": 3}', "[]", "3", '{"offset": 0}']
    ):
        shard = marker["splits"]["val"]["shards"][0]
        (folder / shard["sidecar"]).write_text(forged)
        shard["sidecar_sha256"] = hashlib.sha256(forged.encode()).hexdigest()
        (folder / "recordmill.json").write_text(json.dumps(marker))
        lines = [
            str(finding)
            for finding in verify_dataset(open_dataset(str(folder)), threads=1).findings
        ]
        assert any(
            "the sidecar cannot be read" in line or "rows are malformed" in line for line in lines
        ), number


def test_unlisted_files_in_a_dataset_are_found(annotated, tmp_path):
    folder = shutil.copytree(annotated, tmp_path / "with-strangers")
    shard = next(folder.glob("train-*"))
    for name in ("more/deep", "another"):
        (folder / name).mkdir(parents=True)
    shutil.copy(shard, folder / "more/deep" / shard.name)
    shutil.copytree(annotated, folder / "another/dataset")
    (folder / "sidecars" / "mine.jsonl").write_text("{}")
    lines = [
        str(each)
        for each in verify_dataset(open_dataset(str(folder))).findings
        if each.kind == "stale"
    ]
    assert lines == [
        f"more/deep/{shard.name}: the dataset does not list this file: readers that use a glob "
        "read it too",
        "sidecars/mine.jsonl: the dataset does not list this file among its sidecars",
    ]


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "pipe"])
def test_a_shard_that_is_a_device_is_not_waited_for(annotated, tmp_path, device):
    folder = shutil.copytree(annotated, tmp_path / "devices")
    os.mkfifo(tmp_path / "pipe")
    for path in (*folder.glob("train-*"), *folder.glob("sidecars/train-*"), folder / "labels.txt"):
        path.unlink()
        path.symlink_to(tmp_path / "pipe" if device == "pipe" else device)
    lines = [str(finding) for finding in verify_dataset(open_dataset(str(folder))).findings]
    assert (
        "train-00000-of-00001.tfrecord: the file cannot be read: it is a pipe or a device" in lines
    )
    assert "labels.txt: the file cannot be read: it is a pipe or a device" in lines


def without(marker, path, null):
    changed = copy.deepcopy(marker)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = None
    if not null:
        del inner[path[-1]]
    return changed


def key_places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all keys, whatever they hold."""
    for key, each in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield (*path, key)
        yield from key_places(each, (*path, key))


@pytest.mark.parametrize(
    ("null", "step"),
    [
        (False, 4),
        pytest.param(False, 1, marks=pytest.mark.slow),
        pytest.param(True, 1, marks=pytest.mark.slow),
    ],
)
def test_a_marker_that_lacks_anything_is_read_or_is_one_sentence(annotated, null, step):
    original = (annotated / "recordmill.json").read_bytes()
    marker = json.loads(original)
    read, refused = 0, 0
    try:
        for path in one_of_each(key_places(marker))[::step]:
            (annotated / "recordmill.json").write_text(json.dumps(without(marker, path, null)))
            try:
                dataset = open_dataset(str(annotated))
            except LoadError:
                refused += 1
                with pytest.raises(LoadError, match=r"^[^\n]+$"):
                    describe_split(str(annotated), "val")
                continue
            read += 1
            verify_dataset(dataset, threads=1)
            list(summary_view(summarize_dataset(dataset)))
            for split in dataset.marker.splits:
                info = describe_split(str(annotated), split)
                assert (
                    (info.image_size, info.num_examples >= 0) == ((32, 48), True)
                    if info.shards
                    else True
                )
    finally:
        (annotated / "recordmill.json").write_bytes(original)
    assert (read > 100 / step, refused > 50 / step) == (True, True), (read, refused)
