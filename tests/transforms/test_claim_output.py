import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from make_settings import make_settings

from recordmill import storage
from recordmill.pipeline.configuration.resolve_settings import make_recipe
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelSettings
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import ShardSettings, SplitSettings
from recordmill.transforms import claim_output
from recordmill.transforms.claim_output import settle_action
from recordmill.transforms.plan_shards import plan_dataset
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import Summary

SETTINGS = make_settings(
    shards=ShardSettings(count=2), splits=SplitSettings(fractions={"train": 0.5, "test": 0.3})
)
SETTINGS_OF_ONE = make_settings(
    splits=SplitSettings(fractions={"train": 1.0}), shards=ShardSettings(count=1)
)
REFS = [ImageRef(f"cat/{n}", f"/x/cat/{n}", 10, label="cat") for n in range(60)]


def planned(refs, run):
    """The plan of such references, as if nothing were in the output."""
    summary = Summary()
    for ref in refs:
        summary.add(
            ReferenceBatch.of([ref]), ImageSplitter(SETTINGS.seed, SETTINGS.splits, SplitCutoffs())
        )
    return plan_dataset(summary, SplitCutoffs(), SETTINGS, make_recipe(SETTINGS), run)


def settled(refs, run):
    """What is decided about the output."""
    return settle_action(planned(refs, run), run).decision


@pytest.fixture
def looks(monkeypatch):
    """The looks at outputs: the names that were there at each."""
    real, seen = claim_output.read_output, []

    def look(output, *more):
        seen.append(os.listdir(output) if os.path.isdir(output) else [])
        return real(output, *more)

    monkeypatch.setattr(claim_output, "read_output", look)
    return seen


def test_a_run_that_converts_looks_once_when_it_has_claimed(pictures, run, run_steps, looks):
    pictures(6)
    done = run_steps(SETTINGS_OF_ONE, run)
    assert (done["status"], looks) == ("published", [[f".staging-{done['plan_id']}"]])


def test_a_run_that_keeps_the_dataset_looks_once_and_claims_nothing(
    pictures, run, run_steps, looks, monkeypatch
):
    pictures(6)
    run_steps(SETTINGS_OF_ONE, run)
    looks.clear()
    monkeypatch.setattr(claim_output.runs, "claim_output", None)
    kept = run_steps(SETTINGS_OF_ONE, replace(run, run_id="again"))
    assert (kept["status"], len(looks)) == ("kept", 1)


def test_a_dataset_that_is_deleted_while_a_run_looks_is_made_again(
    pictures, run, run_steps, monkeypatch
):
    pictures(6)
    run_steps(SETTINGS_OF_ONE, run)
    marker, real = Path(run.output, "recordmill.json"), claim_output.read_output

    def look(output, *more):
        for path in Path(output).iterdir() if marker.exists() else ():
            path.rename(path.parent.parent / path.name)
        return real(output, *more)

    monkeypatch.setattr(claim_output, "read_output", look)
    assert run_steps(SETTINGS_OF_ONE, replace(run, run_id="again"))["status"] == "published"
    assert marker.exists()


def test_planning_writes_nothing(run, tmp_path):
    assert planned(REFS, run).decision.action == "convert"
    assert list(tmp_path.iterdir()) == []


def test_a_preview_writes_nothing_and_says_so(run, tmp_path):
    plan = settled(REFS, replace(run, preview=True))
    assert plan.action == "preview"
    assert (
        plan.sentence == f"nothing was written; without --plan the dataset would be in {run.output}"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_preview_finishes_no_switch_that_was_cut(run, tmp_path):
    plan = planned(REFS, run)
    staging = tmp_path / "out" / f".staging-{plan.dataset.plan_id}"
    staging.mkdir(parents=True, exist_ok=True)
    (staging / "recordmill.json").write_text('{"switch": {"moves": [], "removes": []}}')
    assert settled(REFS, run).action == "finish"
    previewed = settled(REFS, replace(run, preview=True))
    assert previewed.action == "preview"


def test_a_run_claims_the_output_and_another_plan_is_refused(run, tree):
    plan = settled(REFS, run)
    assert (plan.action, plan.found) == ("convert", None)
    assert list(tree(run.output)) == [f".staging-{plan.staged_as}/claim-run.json"]
    other = settled(REFS[1:], run)
    assert other.action == "refuse"
    assert other.sentence.startswith(
        f"{run.output} is in use by another run (.staging-{plan.staged_as}, process "
    )
    assert list(tree(run.output)) == [f".staging-{plan.staged_as}/claim-run.json"]


def test_a_plan_that_is_overtaken_is_refused(run, monkeypatch):
    # The other plan's claim appears between the look at the output and the claim.
    real = claim_output.runs.claim_output

    def overtaken(output, plan_id, run_id, *planned):
        real(output, "other", "other run")
        real(output, plan_id, run_id, *planned)

    monkeypatch.setattr(claim_output.runs, "claim_output", overtaken)
    plan = settled(REFS, run)
    assert plan.action == "refuse"
    assert plan.sentence.startswith(
        f"{run.output} is in use by another run (.staging-other, process "
    )
    assert [path.name for path in Path(run.output).iterdir()] == [".staging-other"]


def test_a_dataset_that_is_published_while_a_run_claims_its_output_is_kept(
    pictures, run, run_steps, monkeypatch
):
    pictures(8)
    settings = replace(SETTINGS, splits=SplitSettings(fractions={"train": 1.0}))
    real, others = claim_output.runs.claim_output, []

    def overtaken(output, plan_id, run_id, *planned):
        real(output, plan_id, run_id, *planned)
        if not others:
            others.append("begun")
            others.append(
                run_steps(
                    settings, replace(run, run_id="other", outcome_file=f"{run.outcome_file}.other")
                )
            )

    monkeypatch.setattr(claim_output.runs, "claim_output", overtaken)
    outcome = run_steps(settings, run)
    assert (others[1]["status"], outcome["status"]) == ("published", "kept")
    assert [name for name in os.listdir(run.output) if name.startswith(".")] == []


def test_what_other_runs_have_left_gives_way_only_to_a_run_that_converts(run, tree):
    gone = Path(run.output) / ".staging-other"
    gone.mkdir(parents=True)
    (gone / "rejected.jsonl").write_text("")
    preview = replace(run, preview=True)
    assert settle_action(planned(REFS, preview), preview).notes == ()
    assert gone.exists()
    plan = settle_action(planned(REFS, run), run)
    note = "deleted .staging-other, which another run had left: no run will resume from it"
    assert (plan.decision.action, plan.notes) == ("convert", (note,))
    assert note not in plan.dataset.notes
    assert list(tree(run.output)) == [f".staging-{plan.dataset.plan_id}/claim-run.json"]


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, None])
def test_any_error_while_a_run_claims_its_output_is_one_sentence(run, monkeypatch, code):
    def fail(path, content):
        raise OSError(code, "Input/output error") if code else OSError("Input/output\nerror")

    monkeypatch.setattr(storage, "write_file", fail)
    plan = settled(REFS, run)
    assert (plan.action, plan.sentence) == (
        "fail",
        f"the output {run.output} cannot be written: input/output error",
    )


def test_an_error_after_the_claim_takes_the_claim_back(run, monkeypatch):
    seen = []

    def fail(output, *more):
        seen.append(os.listdir(output))
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(claim_output, "read_output", fail)
    plan = settled(REFS, run)
    assert (plan.action, seen) == ("fail", [[f".staging-{plan.staged_as}"]])
    assert os.listdir(run.output) == []


NOTE = (
    "this dataset may be outdated (files could not be read or were modified, other files are "
    "ignored, or its description differs): --overwrite rebuilds it"
)


def test_changed_modification_times_are_reported_and_rebuilt_only_when_asked(
    pictures, run, run_steps, tree
):
    first = pictures(6)[0]
    settings = make_settings(
        splits=SplitSettings(fractions={"train": 1.0}), shards=ShardSettings(count=2)
    )
    made = run_steps(settings, run)
    before = tree(run.output)
    again = run_steps(settings, replace(run, run_id="again"))
    assert (again["status"], again["notes"]) == ("kept", [])
    os.utime(first.uri, ns=(1, 1))
    touched = run_steps(settings, replace(run, run_id="touched"))
    assert (touched["status"], touched["notes"], touched["plan_id"]) == (
        "kept",
        [NOTE],
        made["plan_id"],
    )
    assert tree(run.output) == before
    rebuilt = run_steps(settings, replace(run, run_id="rebuilt", overwrite=True))
    assert (rebuilt["status"], rebuilt["notes"]) == ("published", [])
    old, new = (json.loads(files["recordmill.json"])["run"] for files in (before, tree(run.output)))
    assert (old["id"], new["id"]) == ("run", "rebuilt")
    assert old["versions"] != new["versions"]
    settled = run_steps(settings, replace(run, run_id="settled", overwrite=True))
    assert (settled["status"], settled["notes"]) == ("kept", [])


def test_classes_that_an_overwritten_dataset_numbered_otherwise_are_reported(
    pictures, run, run_steps
):
    pictures(6)
    run_steps(SETTINGS_OF_ONE, run)
    again = replace(SETTINGS_OF_ONE, labels=LabelSettings(offset=1))
    overwriting = replace(run, run_id="again", overwrite=True)
    previewed = run_steps(again, replace(overwriting, preview=True))
    place = f"nothing was written; without --plan the dataset would be in {run.output}"
    assert previewed["message"] == f"{place}, in place of the one that is there"
    note = (
        "2 classes have other ids than in the dataset that is replaced (cat 0 -> 1, dog 1 -> 2): "
    )
    done = run_steps(again, overwriting)
    assert (done["status"], done["notes"]) == ("published", [f"{note}labels.classes fixes them"])
