import json
import os
import re
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.pvalue import AsSingleton
from eager_beam import assert_that, new_pipeline
from make_settings import make_settings
from write_shard import write_shard

from recordmill import storage
from recordmill.pipeline.configuration.resolve_settings import make_recipe
from recordmill.reading.dataset import open_dataset
from recordmill.reading.report.draw_samples import draw_samples
from recordmill.reading.report.write_report import write_report
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.totals import FinishedShards
from recordmill.schemas.digests import hash_key, version_digest_of
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch, ShardBatch
from recordmill.schemas.settings.dataset import (
    ExampleLayout,
    ShardSettings,
    SplitSettings,
)
from recordmill.schemas.settings.rejection_limits import RejectionLimits
from recordmill.storage.dataset_files import staging_folder
from recordmill.transforms import publish_dataset
from recordmill.transforms.claim_output import settle_action
from recordmill.transforms.convert_shards import gather_reports
from recordmill.transforms.plan_shards import assign_shard, plan_dataset
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import Summary
from recordmill.transforms.publish_dataset import PublishDataset
from recordmill.transforms.publishing.companions.run_reports import Reporters
from recordmill.transforms.records.convert_image import convert_image
from recordmill.transforms.shards.shard_files import failed_report, fingerprint

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

DESCRIPTIONS = [
    "README.md",
    "samples.svg",
    "dataset_info.json",
    "features.json",
    "image.class.label.labels.txt",
    "schema.pbtxt",
    "croissant.json",
    "records.index",
    "records.versions",
    "report.json",
]

SETTINGS = make_settings(
    splits=SplitSettings(fractions={"train": 1.0}), shards=ShardSettings(count=2)
)

REPORTERS = Reporters(write_report, draw_samples)

publish = partial(publish_dataset.publish, reporters=REPORTERS, copies=())


def plan_of(refs, run, settings=SETTINGS):
    summary = Summary()
    for ref in refs:
        summary.add(ReferenceBatch.of([ref]), ImageSplitter(0, settings.splits, SplitCutoffs()))
    plan = plan_dataset(summary, SplitCutoffs(), settings, make_recipe(settings), run)
    return settle_action(plan, run)


def decided(plan, **changed):
    return replace(plan, decision=replace(plan.decision, **changed))


def shard_of(ref, plan, splitter):
    return assign_shard(ref, hash_key(splitter.seed, ref.key), plan.dataset, splitter)


def write_all(plan, refs, run, settings=SETTINGS):
    shards, splitter = {}, ImageSplitter(settings.seed, settings.splits, plan.dataset.selection)
    for ref in refs:
        if (shard := shard_of(ref, plan, splitter)) is not None:
            shards.setdefault(shard, []).append(ref)
    staging = Path(staging_folder(run.output, plan.dataset.plan_id))
    staging.mkdir(parents=True, exist_ok=True)
    return [
        write_shard(
            str(staging),
            *shard,
            (
                convert_image(ref, ExampleLayout(settings), plan.dataset.label_map, nullcontext())
                for ref in own
            ),
            fingerprint(ShardBatch.of(own, 0)),
            "none",
        )
        for shard, own in sorted(shards.items())
    ]


@pytest.fixture
def refs(pictures):
    return [*pictures(8), ImageRef("r", "/x/r", 3).notice("rejected", "no_class", "none")]


def test_a_published_dataset_is_its_files_and_nothing_else(refs, run, tree):
    plan = plan_of(refs, run)
    outcome = publish(gather_reports(write_all(plan, refs, run)), plan, SETTINGS, run)
    assert (outcome.status, outcome.message, outcome.exit_code) == (
        "published",
        f"8 images are in {run.output}",
        0,
    )
    shards = [f"train-0000{index}-of-00002.tfrecord" for index in (0, 1)]
    files = tree(run.output)
    assert set(files) == {
        *shards,
        *(f"sidecars/{name}.jsonl" for name in shards),
        "labels.txt",
        "config.yaml",
        "rejected.jsonl",
        "duplicates.jsonl",
        "recordmill.json",
        *DESCRIPTIONS,
        "report.html",
    }
    assert (files["labels.txt"], files["config.yaml"]) == (
        b"0:cat\n1:dog\n",
        make_recipe(SETTINGS).config_text.encode(),
    )
    assert json.loads(files["rejected.jsonl"]) == {
        "uri": f"{run.inputs['']}/r",
        "stage": "list",
        "reason": "no_class",
        "detail": "none",
        "bytes": 3,
        "sha256": None,
        "class": None,
        "key": "r",
    }
    marker = json.loads(files["recordmill.json"])
    assert "switch" not in marker
    assert marker["plan"]["id"] == plan.dataset.plan_id
    assert (
        marker["run"].items() >= {"id": "run", "runner": "FnApiRunner", "shards_reused": 0}.items()
    )
    assert marker["ledger"]["written"] == 8
    written = json.loads(Path(run.outcome_file).read_bytes())
    assert written == {**to_json(outcome), "run_id": "run"}


def test_an_image_that_could_not_be_read_once_is_read_when_the_dataset_is_overwritten(
    pictures, run, run_steps, monkeypatch
):
    unreadable, really_open = pictures(8)[3].uri, os.open

    def fail(path, *how, **more):
        if path == unreadable:
            raise PermissionError(13, "Permission denied", path)
        return really_open(path, *how, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", fail)
        first = run_steps(SETTINGS, run)
    assert (first["status"], first["numbers"]["ledger"]["rejected"]) == (
        "published",
        {"unreadable": 1},
    )
    kept = run_steps(SETTINGS, run)
    assert (kept["status"], kept["numbers"]["ledger"]["written"]) == ("kept", 7)
    again = run_steps(SETTINGS, replace(run, overwrite=True))
    assert (again["status"], again["plan_id"]) == ("published", first["plan_id"])
    assert again["numbers"]["ledger"] == {
        **first["numbers"]["ledger"],
        "written": 8,
        "rejected": {},
    }
    assert run_steps(SETTINGS, replace(run, overwrite=True))["status"] == "kept"


def test_images_that_changed_split_since_the_replaced_dataset_are_reported(
    pictures, run, run_steps
):
    pictures(40)
    halves = replace(SETTINGS, splits=SplitSettings(fractions={"train": 0.5, "test": 0.5}))
    assert run_steps(halves, run)["notes"] == []
    swapped = replace(SETTINGS, splits=SplitSettings(fractions={"test": 0.5, "train": 0.5}))
    before = json.loads((Path(run.output) / "recordmill.json").read_bytes())["splits"]
    notes = run_steps(swapped, replace(run, overwrite=True))["notes"]
    counts = sorted(((before[name]["records"], name) for name in before), reverse=True)
    ways = ", ".join(
        f"{count} from {name} to {'test' if name == 'train' else 'train'}" for count, name in counts
    )
    assert notes == [f"40 images are in another split than in the dataset that is replaced: {ways}"]


def test_a_split_whose_images_are_all_rejected_is_reported(pictures, run, run_steps):
    halves = replace(
        SETTINGS,
        splits=SplitSettings(fractions={"train": 0.5, "test": 0.5}),
        max_rejected=RejectionLimits(share=1.0, count=99, lost_classes=2),
    )
    refs = pictures(8)
    placed = {ref: ImageSplitter(0, halves.splits, SplitCutoffs()).place(ref)[1] for ref in refs}
    assert set(placed.values()) == {"train", "test"}
    for ref, split in placed.items():
        if split == "test":
            Path(ref.uri).write_bytes(bytes(ref.size))
    outcome = run_steps(halves, run)
    note = "split test is empty: its images were rejected"
    assert (outcome["status"], note in outcome["notes"]) == ("published", True)
    assert note in json.loads((Path(run.output) / "recordmill.json").read_bytes())["notes"]


def test_all_that_a_marker_names_is_on_the_disk_before_it_is(pictures, run, run_steps, monkeypatch):
    output, events = Path(run.output), []
    really_force, really_move = os.fsync, os.replace

    def force(file):
        events.append(("forced", os.fstat(file).st_ino))
        really_force(file)

    def move(source, target):
        really_move(source, target)
        events.append(("moved", Path(target)))

    monkeypatch.setattr(os, "fsync", force)
    monkeypatch.setattr(os, "replace", move)
    pictures(8)
    assert run_steps(SETTINGS, run)["status"] == "published"
    switched = events.index(("moved", output / "recordmill.json"))
    earlier = {inode for what, inode in events[:switched] if what == "forced"}
    published = [
        path for path in output.rglob("*") if path.is_file() and path.name != "report.html"
    ]
    assert len(published) > 15
    assert [path.name for path in published if path.stat().st_ino not in earlier] == []
    for folder in (output, output / "sidecars"):
        last_move = max(
            at for at, event in enumerate(events[:switched]) if event[1] in folder.iterdir()
        )
        assert ("forced", folder.stat().st_ino) in events[last_move:switched]
    assert ("forced", output.stat().st_ino) in events[switched:]


def test_the_report_is_made_from_the_published_dataset_and_is_in_no_list(refs, run, tree):
    plan, seen = plan_of(refs, run), []

    def look(output, marker):
        seen.append(json.loads(Path(output, "recordmill.json").read_bytes()))
        assert to_json(marker) == seen[0]
        return write_report(output, marker)

    reports = gather_reports(write_all(plan, refs, run))
    outcome = publish_dataset.publish(
        reports, plan, SETTINGS, run, replace(REPORTERS, write_report=look), ()
    )
    (marker,) = seen
    assert (outcome.numbers.report, outcome.notes) == ("report.html", ())
    assert "report.json" in marker["files"]
    assert "report.html" not in {*marker["files"], *marker["run"]["digests"]}
    assert json.loads(tree(run.output)["recordmill.json"]) == marker
    assert verify_dataset(open_dataset(run.output)).findings == ()


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ZeroDivisionError("a chart is\nbroken"), "a chart is broken"),
        (KeyError(), "KeyError"),
        (
            OSError(28, "No space left on device", "OUT/report.html"),
            "the output OUT cannot be written: no space left on device",
        ),
    ],
)
def test_a_report_that_fails_is_a_note_and_the_next_run_makes_it(refs, run, tree, error, why):
    def fail(*_):
        raise error

    plan, failing = plan_of(refs, run), replace(REPORTERS, write_report=fail)
    reports = gather_reports(write_all(plan, refs, run))
    outcome = publish_dataset.publish(reports, plan, SETTINGS, run, failing, ())
    why = why.replace("OUT", run.output)
    note = f"report.html was not made ({why}): recordmill inspect {run.output} --report makes it"
    assert (outcome.status, outcome.exit_code, outcome.notes) == ("published", 0, (note,))
    assert outcome.numbers.report is None
    before = tree(run.output)
    assert "report.html" not in before
    looking = replace(run, preview=True)
    preview = publish(FinishedShards(), plan_of(refs, looking), SETTINGS, looking)
    assert preview.numbers.report is None
    assert tree(run.output) == before
    again = publish(FinishedShards(), plan_of(refs, run), SETTINGS, run)
    assert (again.status, again.numbers.report, again.notes) == ("kept", "report.html", ())
    after = tree(run.output)
    assert b"Worth a look" in after.pop("report.html")
    assert after == before
    kept = publish_dataset.publish(FinishedShards(), plan_of(refs, run), SETTINGS, run, failing, ())
    assert (kept.status, kept.numbers.report, kept.notes) == ("kept", "report.html", ())


def test_the_report_of_a_replaced_dataset_goes_with_it(refs, run, tree):
    plan = plan_of(refs, run)
    publish(gather_reports(write_all(plan, refs, run)), plan, SETTINGS, run)
    assert {"report.html", "report.json"} < set(tree(run.output))
    other = replace(SETTINGS, shards=ShardSettings(count=3), report=False)
    overwriting = replace(run, overwrite=True)
    plan = plan_of(refs, overwriting, other)
    publish(gather_reports(write_all(plan, refs, overwriting, other)), plan, other, overwriting)
    assert not {"report.html", "report.json"} & set(tree(run.output))


@pytest.mark.parametrize("has_report", [False, True])
def test_a_page_of_the_users_is_never_deleted_or_replaced(refs, run, tree, has_report):
    plain = replace(SETTINGS, report=False)
    plan = plan_of(refs, run, plain)
    publish(gather_reports(write_all(plan, refs, run, plain)), plan, plain, run)
    page = Path(run.output, "report.html")
    page.write_text("<!doctype html>\n<p>mine</p>")
    other = replace(SETTINGS, shards=ShardSettings(count=3), report=has_report)
    overwriting = replace(run, overwrite=True)
    plan = plan_of(refs, overwriting, other)
    outcome = publish(
        gather_reports(write_all(plan, refs, overwriting, other)), plan, other, overwriting
    )
    assert outcome.status == "published"
    assert page.read_text() == "<!doctype html>\n<p>mine</p>"
    advice = f"{page} is not a page that Recordmill made: rename it"
    note = f"report.html was not made ({advice}): recordmill inspect {run.output} --report makes it"
    assert [each for each in outcome.notes if "report" in each] == [note] * has_report
    assert outcome.numbers.report is None
    kept = publish(FinishedShards(), plan_of(refs, run, other), other, run)
    assert (kept.status, kept.notes, kept.numbers.report) == (
        "kept",
        (note,) * has_report,
        None,
    )
    assert page.read_text() == "<!doctype html>\n<p>mine</p>"


def test_what_describes_a_dataset_is_among_its_files_and_goes_with_it(refs, run, tree):
    indexed = replace(SETTINGS, index_files=True)
    plan = plan_of(refs, run, indexed)
    publish(gather_reports(write_all(plan, refs, run)), plan, indexed, run)
    files = tree(run.output)
    names = [f"sidecars/train-0000{index}-of-00002.tfrecord.idx" for index in (0, 1)]
    assert set(names) <= set(json.loads(files["recordmill.json"])["files"]) & set(files)
    assert "switch" not in json.loads(files["recordmill.json"])
    lengths = [int(line.split()[1]) for name in names for line in files[name].splitlines()]
    assert (len(lengths), sum(lengths)) == (8, sum(len(files[f"{name[9:-4]}"]) for name in names))
    overwriting = replace(run, overwrite=True)
    plan = plan_of(refs, overwriting)
    assert (
        publish(
            gather_reports(write_all(plan, refs, overwriting)), plan, SETTINGS, overwriting
        ).status
        == "published"
    )
    assert not set(names) & set(tree(run.output))


def test_labels_are_listed_as_the_conventions_readers_expect(refs, run, tree):
    settings = replace(SETTINGS, convention="inception")
    plan = plan_of(refs, run, settings)
    publish(gather_reports(write_all(plan, refs, run, settings)), plan, settings, run)
    assert tree(run.output)["labels.txt"] == b"cat\ndog\n"


def test_a_cut_while_describing_leaves_the_output_as_it_was(refs, run, tree, cut_after):
    plan = plan_of(refs, run)
    reports = write_all(plan, refs, run)
    indexed = replace(SETTINGS, index_files=True)
    publish(gather_reports(reports), plan, indexed, run)
    expected = without_run(tree(run.output))
    for most in range(0, 200, 3):
        # The report's title.
        output = replace(run, output=f"{run.output}-{most}/{Path(run.output).name}")
        plan = plan_of(refs, output)
        reports = write_all(plan, refs, output)
        with cut_after(most) as done:
            publish(gather_reports(reports), plan, indexed, output)
        again = plan_of(refs, output)
        rest = reports if again.decision.action == "convert" else []
        publish(gather_reports(rest), again, indexed, output)
        assert without_run(tree(output.output)) == expected
        if len(done) < most:
            break
    assert most > 20


def without_run(files):
    marker = json.loads(files["recordmill.json"])
    del marker["run"]
    of_this_run = rb'<section id="run">.*?</section>|<!-- SHA-256 [^>]*-->'
    report = re.sub(of_this_run, b"", files["report.html"], flags=re.DOTALL)
    return {**files, "recordmill.json": marker, "report.html": report}


def test_publishing_what_is_there_keeps_it(refs, run, tree):
    plan = plan_of(refs, run)
    publish(gather_reports(write_all(plan, refs, run)), plan, SETTINGS, run)
    before = tree(run.output)
    again = plan_of(refs, run)
    outcome = publish(FinishedShards(), again, SETTINGS, run)
    assert (again.decision.action, outcome.status, outcome.exit_code) == ("keep", "kept", 0)
    assert tree(run.output) == before


def test_an_overwritten_dataset_leaves_nothing_of_the_old(refs, run, tree):
    plan = plan_of(refs, run)
    publish(gather_reports(write_all(plan, refs, run)), plan, SETTINGS, run)
    other = replace(SETTINGS, shards=ShardSettings(count=3))
    overwriting = replace(run, overwrite=True)
    plan = plan_of(refs, overwriting, other)
    assert (
        publish(
            gather_reports(write_all(plan, refs, overwriting, other)), plan, other, overwriting
        ).status
        == "published"
    )
    assert {name for name in tree(run.output) if name.endswith(".tfrecord")} == {
        f"train-0000{index}-of-00003.tfrecord" for index in range(3)
    }
    assert len(tree(run.output)) == 12 + len(DESCRIPTIONS)


def test_too_many_rejected_leave_the_output_as_it_was_and_say_why(refs, run, tree):
    strict = replace(SETTINGS, max_rejected=RejectionLimits(share=0, count=0))
    plan = plan_of(refs, run)
    outcome = publish(gather_reports(write_all(plan, refs, run)), plan, strict, run)
    assert (outcome.status, outcome.exit_code) == ("failed", 3)
    assert outcome.message.startswith("1 of 9 images (11.11%) was rejected (1 no_class)")
    assert outcome.numbers.ledger.rejected == {"no_class": 1}
    assert all(name.startswith(f".staging-{plan.dataset.plan_id}/") for name in tree(run.output))
    assert f".staging-{plan.dataset.plan_id}/rejected.jsonl" in tree(run.output)


def test_a_problem_of_a_shard_fails_the_run_with_its_sentence(refs, run):
    plan = plan_of(refs, run)
    outcome = publish(
        gather_reports([failed_report("train", 0, len(refs), "the disk is full")]),
        plan,
        SETTINGS,
        run,
    )
    assert (outcome.status, outcome.exit_code) == ("failed", 1)
    assert outcome.message.startswith("the disk is full")


def in_staging(plan, run):
    return f"are in {run.output}/.staging-{plan.dataset.plan_id}"


def test_a_lost_record_fails_the_run(refs, run, tree):
    plan = plan_of(refs, run)
    reports = write_all(plan, refs, run)
    outcome = publish(gather_reports(reports[1:]), plan, SETTINGS, run)
    assert (outcome.status, outcome.exit_code) == ("failed", 1)
    found = 9 - reports[0].references
    assert outcome.message.startswith(
        f"9 references were listed and {found} are accounted for: {{'listed': 9, "
    )
    assert outcome.message.endswith(f"; finished shards {in_staging(plan, run)}")
    assert all(name.startswith(f".staging-{plan.dataset.plan_id}/") for name in tree(run.output))


def test_one_image_in_anothers_place_fails_the_run(refs, run):
    plan = plan_of(refs, run)
    outcome = publish(
        gather_reports(write_all(plan, [*refs[1:], replace(refs[1], key="cat/x.jpg")], run)),
        plan,
        SETTINGS,
        run,
    )
    assert (outcome.status, outcome.exit_code, outcome.message) == (
        "failed",
        1,
        "the references that were written are not those that were listed, though they are as many; "
        f"finished shards {in_staging(plan, run)}",
    )


def test_clashing_names_fail_the_run(refs, run):
    one = ShardSettings(count=1, name="{split}.txt")
    settings = replace(SETTINGS, splits=SplitSettings(fractions={"labels": 1.0}), shards=one)
    plan = plan_of(refs, run, settings)
    outcome = publish(gather_reports(write_all(plan, refs, run, settings)), plan, settings, run)
    assert (outcome.status, outcome.exit_code, outcome.message) == (
        "failed",
        1,
        "two files or folders of the dataset would be called labels.txt: change shards.name or the "
        "splits' names; "
        f"finished shards {in_staging(plan, run)}",
    )


DISK_FULL = "the disk is full"


def test_a_damaged_dataset_is_not_kept_when_rebuilding_it_fails(refs, run):
    plan = plan_of(refs, run)
    publish(gather_reports(write_all(plan, refs, run)), plan, SETTINGS, run)
    (Path(run.output) / "train-00000-of-00002.tfrecord").unlink()
    again = replace(run, run_id="again", overwrite=True)
    plan = plan_of(refs, again)
    decision = plan.decision
    assert (decision.action, decision.found.marker.run.id) == ("convert", "run")
    outcome = publish(
        gather_reports([failed_report("train", 0, len(refs), DISK_FULL)]), plan, SETTINGS, again
    )
    assert (outcome.status, outcome.exit_code) == ("failed", 1)
    assert outcome.message == f"{DISK_FULL}; finished shards {in_staging(plan, run)}"
    # Nor is a whole one that this run was to rebuild: it is the one that was found, not another
    # run's.
    plan = decided(plan_of(refs, again), action="convert")
    publish(gather_reports(write_all(plan, refs, again)), plan, SETTINGS, again)
    plan = decided(plan_of(refs, again), action="convert")
    assert plan.decision.found.marker.run.id == "again"
    assert (
        publish(
            gather_reports([failed_report("train", 0, len(refs), DISK_FULL)]), plan, SETTINGS, again
        ).status
        == "failed"
    )


def test_a_run_that_fails_keeps_what_another_run_has_published_meanwhile(refs, run, tree):
    plan = plan_of(refs, run)
    other = replace(run, run_id="other")
    publish(gather_reports(write_all(plan, refs, other)), plan_of(refs, other), SETTINGS, other)
    before = tree(run.output)
    outcome = publish(
        gather_reports([failed_report("train", 0, len(refs), DISK_FULL)]), plan, SETTINGS, run
    )
    assert (outcome.status, outcome.exit_code) == ("kept", 0)
    assert outcome.message == f"in the meantime, another run has put this dataset in {run.output}"
    assert outcome.numbers.ledger.written == 8
    assert ".staging-" in next(iter(before))  # where this run was at work while the other one ended
    assert tree(run.output) == {
        name: content for name, content in before.items() if ".staging-" not in name
    }
    (Path(run.output) / "rejected.jsonl").unlink()
    assert (
        publish(
            gather_reports([failed_report("train", 0, len(refs), DISK_FULL)]), plan, SETTINGS, run
        ).status
        == "failed"
    )


STEPS = [
    "exists",
    "folder_names",
    "make_folder",
    "move_file",
    "open_to_read",
    "open_to_write",
    "read_range",
]
STEPS += ["remove_files", "remove_folder", "write_file"]


def test_two_runs_of_one_plan_that_publish_at_once_both_end_well(refs, run, tree, monkeypatch):
    # The second publishes all at once between any two steps of the first, which goes on with what
    # is left to it.
    plan = plan_of(refs, run)
    publish(gather_reports(write_all(plan, refs, run)), plan, SETTINGS, run)
    expected = without_run(tree(run.output))
    for at in count(0, 7):
        # The report has the folder's name.
        one = replace(run, output=f"{run.output}-{at}/out", run_id="one")
        two = replace(one, run_id="two", outcome_file=f"{run.outcome_file}.two")
        plan, same = plan_of(refs, one), plan_of(refs, two)
        reports, steps, ends = write_all(plan, refs, one), [], []

        def within(real, at=at, two=two, same=same, reports=reports, steps=steps, ends=ends):
            def call(*arguments):
                steps.append(real.__name__)
                if len(steps) == at + 1:
                    ends.append(publish(gather_reports(reports), same, SETTINGS, two))
                return real(*arguments)

            return call

        with monkeypatch.context() as patch:
            for name in STEPS:
                patch.setattr(storage, name, within(getattr(storage, name)))
            ends.append(publish(gather_reports(reports), plan, SETTINGS, one))
        if len(steps) <= at:
            break
        assert {(each.exit_code, each.status) for each in ends} <= {
            (0, "published"),
            (0, "kept"),
        }, steps[at]
        assert without_run(tree(one.output)) == expected, steps[at]
        assert verify_dataset(open_dataset(one.output)).findings == ()
    assert at > 60


def test_shards_of_an_earlier_run_are_reported(refs, run):
    plan = plan_of(refs[:8], run)
    reports = write_all(plan, refs[:8], run)
    outcome = publish(
        gather_reports([replace(reports[0], reused=True), reports[1]]), plan, SETTINGS, run
    )
    assert outcome.status == "published"
    assert outcome.notes == (
        *plan.dataset.notes,
        "1 of 2 shards had been finished by an earlier run",
    )
    marker = json.loads((Path(run.output) / "recordmill.json").read_bytes())
    assert (marker["run"]["shards_reused"], marker["notes"]) == (1, [*plan.dataset.notes])


def test_the_marker_knows_the_files_versions(refs, run):
    plan = plan_of(refs, run)
    publish(gather_reports(write_all(plan, refs, run)), plan, SETTINGS, run)
    marker = json.loads((Path(run.output) / "recordmill.json").read_bytes())
    assert marker["run"]["versions"] == f"{sum(map(version_digest_of, refs)) % 2**256:064x}"


def test_the_sidecar_of_a_shard_without_records_is_published(pictures, run, run_steps, tree):
    refs = pictures(8)
    tolerant = replace(SETTINGS, max_rejected=RejectionLimits(share=1.0, count=99, lost_classes=2))
    plan = plan_of(refs, replace(run, preview=True), tolerant)
    splitter = ImageSplitter(tolerant.seed, tolerant.splits, plan.dataset.selection)
    first = [ref for ref in refs if shard_of(ref, plan, splitter) == ("train", 0)]
    assert 0 < len(first) < 8
    for ref in first:
        Path(ref.uri).write_bytes(bytes(ref.size))
    outcome = run_steps(tolerant, run)
    assert outcome["status"] == "published"
    assert set(tree(run.output)) == {
        "train-00000-of-00001.tfrecord",
        "sidecars/train-00000-of-00001.tfrecord.jsonl",
        "sidecars/rejected-00000.jsonl",
        "labels.txt",
        "config.yaml",
        "rejected.jsonl",
        "duplicates.jsonl",
        "recordmill.json",
        *DESCRIPTIONS,
        "report.html",
    }
    rows = [
        json.loads(line) for line in tree(run.output)["sidecars/rejected-00000.jsonl"].splitlines()
    ]
    assert {row["key"] for row in rows} == {ref.key for ref in first}
    assert all("rejected" in row for row in rows)
    files = json.loads(tree(run.output)["recordmill.json"])["files"]
    beside = ["labels.txt", "rejected.jsonl", "config.yaml", "duplicates.jsonl"]
    assert files == [*beside, "sidecars/rejected-00000.jsonl", *DESCRIPTIONS]
    assert run_steps(tolerant, run)["status"] == "kept"
    (Path(run.output) / "sidecars/rejected-00000.jsonl").unlink()
    assert run_steps(tolerant, run)["message"].startswith(
        f"{run.output} lacks sidecars/rejected-00000.jsonl, "
    )
    run_steps(tolerant, replace(run, overwrite=True))
    assert "sidecars/rejected-00000.jsonl" in tree(run.output)
    for ref in first:  # the next dataset has no such shard, and the old one's sidecar goes
        Path(ref.uri).unlink()
    assert run_steps(tolerant, replace(run, overwrite=True))["status"] == "published"
    assert "sidecars/rejected-00000.jsonl" not in tree(run.output)


@pytest.mark.parametrize("seed", range(4))
def test_the_ledger_balances_where_fractions_leave_most_out_and_a_split_is_filled(
    pictures, run, run_steps, seed
):
    pictures(40)
    settings = make_settings(
        splits=SplitSettings(fractions={"train": 0.4, "test": 0.0001}), seed=seed
    )
    outcome = run_steps(settings, run)
    assert (outcome["status"], outcome["exit_code"]) == ("published", 0)
    ledger, images = outcome["numbers"]["ledger"], outcome["numbers"]["splits"]
    assert images["test"]["images"] == 1
    assert images["train"]["images"] + 1 == ledger["written"]
    assert ledger["listed"] == 40 == ledger["written"] + ledger["left_out"]["fraction"]
    assert outcome["notes"] == [
        "split test would have been empty: it was given the nearest images",
        f"splits.fractions sum to 0.4001: {ledger['left_out']['fraction']} of 40 images are in no "
        "split",
    ]


def test_a_trial_run_has_the_full_runs_class_ids(run, run_steps, tmp_path, draw):
    for number in range(50):
        path = tmp_path / f"photos/{number:02}/a.jpg"
        path.parent.mkdir(parents=True)
        path.write_bytes(draw(number))
    trial = run_steps(replace(SETTINGS, limit=20), replace(run, output=str(tmp_path / "trial")))
    assert trial["numbers"]["ledger"] == {
        "listed": 50,
        "written": 20,
        "rejected": {},
        "ignored": {},
        "left_out": {"limit": 30},
    }
    run_steps(SETTINGS, run)
    labels = [
        json.loads((tmp_path / name / "recordmill.json").read_bytes())["labels"]
        for name in ("trial", "out")
    ]
    assert labels[0] == labels[1] == {f"{number:02}": number for number in range(50)}


@pytest.mark.parametrize(
    ("action", "status", "code"),
    [("refuse", "refused", 1), ("fail", "failed", 1), ("preview", "planned", 0)],
)
def test_other_actions_write_only_the_outcome(refs, run, tmp_path, action, status, code):
    plan = plan_of(refs, replace(run, preview=True))
    plan = decided(plan, action=action, sentence="because")
    outcome = publish(FinishedShards(), plan, SETTINGS, run)
    assert (outcome.status, outcome.message, outcome.exit_code) == (status, "because", code)
    assert not (tmp_path / "out").exists()
    assert json.loads(Path(run.outcome_file).read_bytes())["status"] == status


@pytest.mark.runner
def test_in_a_pipeline_there_is_one_outcome_even_without_shards(refs, run):
    plan = decided(plan_of(refs, run), action="refuse", sentence="because")

    def check(outcomes):
        assert [(each.status, each.message) for each in outcomes] == [("refused", "because")]

    with new_pipeline() as root:
        side = AsSingleton(root | "Plan" >> beam.Create([plan]))
        assert_that(root | beam.Create([]) | PublishDataset(SETTINGS, run, side, REPORTERS), check)
