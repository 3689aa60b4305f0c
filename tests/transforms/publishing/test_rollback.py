import json
from itertools import count

import pytest
from make_marker import EMPTY_RUN, marker_json

from recordmill import storage
from recordmill.schemas.dataset.marker import PlanEntry
from recordmill.transforms.claim_output import decide_action, read_output
from recordmill.transforms.publishing.staged_dataset import publish_staged, roll_back

MOVED = {
    "a.tfrecord": b"new a",
    "labels.txt": b"new labels",
    "sidecars/a.tfrecord.jsonl": b"new sidecar of a",
}
WAITING = {"b.tfrecord": b"new b", "sidecars/b.tfrecord.jsonl": b"new sidecar of b"}
RUN = {**EMPTY_RUN, "id": "r"}
SHARDS = [
    {"name": name, "sidecar": f"sidecars/{name}.jsonl"} for name in ("a.tfrecord", "b.tfrecord")
]
MARKER = marker_json(splits={"train": {"shards": SHARDS}}, files=["labels.txt"], run=RUN)


def arrange(output, old=()):
    """A publication that was cut in its middle, and old files whose names it takes."""
    staging = output / ".staging-p"
    staging.mkdir(parents=True)
    moves = [
        [f"train-{number:05}.jsonl", target] for number, target in enumerate((*MOVED, *WAITING))
    ]
    for source, target in moves:
        place = output / target if target in MOVED else staging / source
        place.parent.mkdir(exist_ok=True)
        place.write_bytes({**MOVED, **WAITING}[target])
    for name in old:
        (output / name).write_bytes(b"old")
    switch = {"moves": moves, "removes": list(old)}
    (staging / "recordmill.json").write_text(json.dumps({**MARKER, "switch": switch}))
    (output / "NOTES.txt").write_bytes(b"mine")


PARTS = {
    f".staging-p/train-{number:05}.jsonl": content
    for number, content in enumerate((MOVED | WAITING).values())
}


def test_what_was_published_goes_back_and_is_unfinished_work(tmp_path, tree):
    arrange(tmp_path, old=["b.tfrecord", "gone.tfrecord"])
    roll_back(str(tmp_path), "p")
    assert tree(tmp_path) == {"NOTES.txt": b"mine", **PARTS}
    assert not (tmp_path / "sidecars").exists()
    assert decide_action(
        read_output(str(tmp_path), "p"), PlanEntry("p", {"compression": "none"}), False
    ) == ("convert", "")


def test_files_and_folders_of_others_stay(tmp_path, tree):
    arrange(tmp_path, old=["b.tfrecord"])
    (tmp_path / "b.tfrecord").unlink()
    (tmp_path / "b.tfrecord").mkdir()
    (tmp_path / "sidecars/mine").write_bytes(b"mine")
    roll_back(str(tmp_path), "p")
    assert tree(tmp_path) == {"NOTES.txt": b"mine", "sidecars/mine": b"mine", **PARTS}
    assert (tmp_path / "b.tfrecord").is_dir()


@pytest.mark.parametrize("plan_id", ["p", "another"])
def test_a_dataset_whose_marker_is_there_stays(tmp_path, tree, plan_id):
    # Another run has finished this one; or the switch from the other had not begun.
    arrange(tmp_path)
    (tmp_path / "recordmill.json").write_text(json.dumps(marker_json(plan_id=plan_id)))
    before = tree(tmp_path)
    roll_back(str(tmp_path), "p")
    assert tree(tmp_path) == before


def test_a_cut_at_any_step_leaves_what_the_next_run_finishes(tmp_path, tree, cut_after):
    for most in count():
        output = tmp_path / f"{most}"
        arrange(output, old=["b.tfrecord", "gone.tfrecord"])
        with cut_after(most) as done:
            roll_back(str(output), "p")
        if len(done) < most:
            break
        if read_output(str(output), "p").pending:
            publish_staged(str(output), "p")
            whole = tree(output)
            assert json.loads(whole.pop("recordmill.json")) == MARKER
            assert whole == {"NOTES.txt": b"mine", **MOVED, **WAITING}
        else:
            storage.remove_folder(str(output / ".staging-p"))
            assert tree(output) == {"NOTES.txt": b"mine"}
    assert most > 6
