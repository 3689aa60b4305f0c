import errno
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.pvalue import AsSingleton
from eager_beam import assert_that, new_pipeline
from make_marker import make_marker
from make_settings import make_settings
from stored_records import read_records

from recordmill.imaging import ImageSettings
from recordmill.schemas.features import parse_example
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.reference_batch import ShardBatch
from recordmill.schemas.settings.dataset import ExampleLayout
from recordmill.transforms import convert_shards
from recordmill.transforms.convert_shards import ConvertShards, _ConvertShard
from recordmill.transforms.planning.earlier_dataset import EarlierDataset, ReusableDataset
from recordmill.transforms.planning.plan import DatasetPlan
from recordmill.transforms.planning.run_plan import OutputDecision, RunPlan
from recordmill.transforms.planning.summary import Summary
from recordmill.transforms.shards import shard_writer
from recordmill.transforms.shards.read_ahead import pool_for
from recordmill.transforms.shards.shard_files import WrittenShard

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SETTINGS = make_settings(seed=3)
EARLIER = ReusableDataset(
    EarlierDataset("/earlier", make_marker()), same_source=True, same_images=True
)
DATASET = DatasetPlan("id", label_map=LabelMap({"cat": 0, "dog": 1}))


def plan_for(run, dataset=DATASET, **changed):
    decision = OutputDecision(output=run.output, staged_as="id")
    return RunPlan(dataset, decision, **changed)


def batched(shard):
    """The references of a shard in two batches."""
    name, refs = shard
    return name, [ShardBatch.of(refs[:3], 3), ShardBatch.of(refs[3:], 3)]


def convert(shards, run):
    """Runs the transform and gives the reports, through a file: Beam copies what a check refers
    to."""
    path = f"{run.outcome_file}.reports"

    def keep(found):
        Path(path).write_bytes(
            pickle.dumps(sorted(found, key=lambda report: (report.split, report.index)))
        )

    with new_pipeline() as root:
        plan = AsSingleton(root | "Plan" >> beam.Create([plan_for(run)]))
        assert_that(
            root | beam.Create(list(map(batched, shards))) | ConvertShards(SETTINGS, run, plan),
            keep,
        )
    return pickle.loads(Path(path).read_bytes())


@pytest.fixture
def shards(pictures):
    refs = pictures(60)
    bad = replace(refs[7], uri="/nowhere")
    return [
        (("train", 0), [*refs[:7], bad, *refs[8:40]]),
        (("train", 1), refs[40:50]),
        (("test", 0), refs[50:]),
    ]


def test_shards_hold_exactly_their_references_in_order(shards, run, draw):
    reports = convert(shards, run)
    assert [(r.split, r.index, r.references, r.records, r.rows.rejected) for r in reports] == [
        ("test", 0, 10, 10, {}),
        ("train", 0, 40, 39, {"vanished": 1}),
        ("train", 1, 10, 10, {}),
    ]
    for (split, index), refs in shards:
        path = f"{run.output}/.staging-id/{split}-{index:05d}.tfrecord"
        stored = [
            parse_example(ExampleLayout(SETTINGS).features, bytes(record))
            for record in read_records(path)
        ]
        kept = [ref for ref in ShardBatch.of(refs, 3).sort().refs if ref.uri != "/nowhere"]
        assert [each["image/filename"].decode() for each in stored] == [
            ref.key.rpartition("/")[2] for ref in kept
        ]
        assert [each["image/encoded"] for each in stored] == [
            Path(ref.uri).read_bytes() for ref in kept
        ]


@pytest.mark.runner
def test_threads_and_listing_order_change_no_byte(shards, run, tree, tmp_path):
    for threads in (1, 2, 8):
        shuffled = [(shard, refs[::-1] if threads > 1 else refs) for shard, refs in shards]
        convert(shuffled, replace(run, output=str(tmp_path / f"out{threads}"), threads=threads))
    one, two, eight = (tree(tmp_path / f"out{threads}") for threads in (1, 2, 8))
    assert one == two == eight
    assert len(one) == 15


def test_finished_shards_are_reused_and_only_those_with_changed_images_are_not(shards, run, tree):
    first = convert(shards, run)
    before = tree(run.output)
    assert [report.reused for report in first] == [False] * 3
    again = convert(shards, run)
    # train-0 has a file that vanished and may be back.
    assert [report.reused for report in again] == [True, False, True]
    assert [replace(report, reused=False) for report in again] == first
    assert tree(run.output) == before
    shard, refs = shards[2]
    changed = [(shard, [replace(refs[0], version="later"), *refs[1:]])]
    assert [report.reused for report in convert(changed, run)] == [False]


def test_a_duplicate_key_is_a_problem_and_no_file(pictures, run):
    refs = pictures(2)
    (report,) = convert([(("train", 0), [refs[0], replace(refs[0], uri="/other")])], run)
    assert report.problem.startswith("two images have the key 'cat/0.jpg': ")
    assert not Path(run.output).exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
def test_whatever_keeps_a_shard_from_this_machines_disk_is_a_sentence(
    shards, run, monkeypatch, code
):
    def fail(*_):
        raise OSError(code, "No space left on device")

    monkeypatch.setattr(WrittenShard, "write", fail)
    (report,) = convert(shards[:1], run)
    assert report.problem == f"the output {run.output} cannot be written: no space left on device"
    assert (report.records, report.references) == (0, 40)


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE, errno.ENOSPC])
def test_an_outage_of_the_input_is_not_blamed_on_the_output(shards, run, monkeypatch, code):
    def fail(*_):
        raise OSError(code, "the input is out of order")

    monkeypatch.setattr(shard_writer, "convert_image", fail)
    with pytest.raises(
        Exception, match=r"photos/\w+/\d+.jpg cannot be read: .*the input is out of order"
    ):
        convert(shards[1:2], run)


def write_at_once(monkeypatch, shards, run, threads):
    """Writes shards with a DoFn and a thread each, as bundles of one process do; gives most decodes
    at once."""
    now, most, lock, real = 0, 0, threading.Lock(), shard_writer.convert_image
    reached = threading.Event()

    def count(ref, settings, label_map, decoding, *more):
        nonlocal now, most
        with decoding:
            with lock:
                now += 1
                most = max(most, now)
            if now == threads:
                reached.set()
            reached.wait(60)  # where they never come, the test fails by their number
            time.sleep(0.002)  # so that one too many would be seen
            with lock:
                now -= 1
        return real(ref, settings, label_map, threading.Semaphore(), *more)

    def write(shard):
        step = pickle.loads(pickle.dumps(_ConvertShard(SETTINGS, replace(run, threads=threads))))
        step.setup()
        step.start_bundle()
        step.process(batched(shard), plan_for(run))
        reports = [report.value for report in step.finish_bundle()]
        step.teardown()
        return reports[0]

    monkeypatch.setattr(shard_writer, "convert_image", count)
    with ThreadPoolExecutor(len(shards)) as bundles:
        reports = list(bundles.map(write, shards))
    assert [report.references for report in reports] == [len(refs) for _, refs in shards]
    return most


@pytest.mark.parametrize("threads", [1, 2])
def test_bundles_of_one_process_decode_together_no_more_than_its_threads(
    shards, pictures, run, monkeypatch, threads
):
    remote = [replace(ref, uri=f"absent://{ref.uri}") for ref in pictures(20, "more")]
    # Nothing is read of an unknown store: convert_image is counted and then rejects by status.
    remote = [ref.notice("rejected", "no_class") for ref in remote]
    assert write_at_once(monkeypatch, [*shards, (("test", 1), remote)], run, threads) == threads


def test_threads_are_chosen_where_the_work_is_done(run, monkeypatch):
    step = _ConvertShard(SETTINGS, replace(run, threads=0))
    monkeypatch.setattr(convert_shards, "available_processors", lambda: 5)
    assert step._start(plan_for(run), []).threads == 5


def test_images_passed_by_their_headers_are_converted_in_line_to_the_same_bytes(
    shards, run, tree, tmp_path
):
    settings = replace(SETTINGS, images=ImageSettings(check="header"))

    def write(threads):
        """Writes the shards; gives how many pools of threads were begun."""
        pool_for.cache_clear()
        step = _ConvertShard(settings, replace(run, threads=threads))
        step.setup()
        step.start_bundle()
        plan = plan_for(replace(run, output=str(tmp_path / f"out{threads}")))
        for shard in shards:
            step.process(batched(shard), plan)
        assert [report.value.references for report in step.finish_bundle()] == [40, 10, 10]
        begun = pool_for.cache_info().currsize
        step.teardown()
        return begun

    assert [write(threads) for threads in (0, 1, 2)] == [0, 1, 1]
    in_line, one, two = (tree(tmp_path / f"out{threads}") for threads in (0, 1, 2))
    assert in_line == one == two
    assert len(in_line) == 15


@pytest.mark.parametrize(
    ("images", "threads", "processes", "here", "there"),
    [
        ({}, 0, 1, (8, False), None),
        ({"check": "header"}, 0, 1, (1, True), None),
        ({"check": "header"}, 3, 1, (3, False), None),
        ({}, 0, 8, (8, True), (1, True)),
        ({"check": "header"}, 0, 2, (1, True), (1, True)),
        ({}, 3, 2, (3, False), (3, False)),
        ({}, 1, 2, (1, True), (1, True)),
        ({}, 1, 1, (1, False), None),
    ],
)
def test_processors_are_shared_by_processes_and_their_threads(
    run, monkeypatch, images, threads, processes, here, there
):
    workers = []
    monkeypatch.setattr(convert_shards, "available_processors", lambda: 8)
    monkeypatch.setattr(
        convert_shards, "WorkerProcesses", lambda *arguments: workers.append(arguments[1:])
    )
    settings = replace(SETTINGS, images=ImageSettings(**images))
    step = _ConvertShard(settings, replace(run, threads=threads, processes=processes))
    writer = step._start(plan_for(run), [])
    assert (writer.threads, writer.in_line) == here
    assert [(each.threads, each.in_line, count) for each, count, _ in workers] == (
        [(*there, processes - 1)] if there else []
    )


@pytest.mark.parametrize(
    ("given", "shards", "workers"), [(True, 1, []), (True, 2, [1]), (True, 9, [7]), (False, 1, [7])]
)
def test_no_more_workers_than_shards_start_for_the_processes_of_a_user(
    run, monkeypatch, given, shards, workers
):
    started = []
    monkeypatch.setattr(
        convert_shards, "WorkerProcesses", lambda *arguments: started.append(arguments[2])
    )
    plan = plan_for(run, replace(DATASET, starts={"train": [*range(shards)]}))
    step = _ConvertShard(SETTINGS, replace(run, processes=8, gives_processes=given))
    step._start(plan, [])
    assert started == workers


@pytest.mark.parametrize(
    ("check", "reuse", "processes", "is_worthwhile"),
    [
        ("decode", (), 2, True),
        ("decode", (EARLIER,), 2, False),
        ("decode", (EARLIER,), 4, True),
        ("header", (), 3, False),
        ("header", (), 4, True),
    ],
)
def test_workers_convert_images_for_others_if_that_is_cheaper_or_they_have_no_shard(
    run, check, reuse, processes, is_worthwhile
):
    dataset = replace(DATASET, starts={"train": [0, 9], "test": [0]})
    plan = plan_for(run, dataset, reuse=reuse)
    step = _ConvertShard(
        replace(SETTINGS, images=ImageSettings(check=check)), replace(run, processes=processes)
    )
    assert step._is_help_worthwhile(plan) is is_worthwhile
    step = _ConvertShard(replace(step._settings, compression="gzip"), step._run)
    assert step._is_help_worthwhile(plan) is (is_worthwhile and not reuse)


def test_one_process_is_enough_for_few_images_and_for_those_in_packed_files(
    run, monkeypatch, pictures
):
    workers = []
    monkeypatch.setattr(convert_shards, "WorkerProcesses", lambda *_: workers.append(1))
    refs = pictures(2)
    monkeypatch.setattr(Summary, "references", 10)
    run = replace(run, processes=2)
    _ConvertShard(SETTINGS, replace(run, fewest_for_processes=11))._start(plan_for(run), refs)
    packed = replace(refs[0], packing="gzip")
    _ConvertShard(SETTINGS, run)._start(plan_for(run), [packed, refs[1]])
    assert workers == []
    zipped = replace(refs[0], packing="zip:0:30:9:9:00000000")
    enough = replace(run, fewest_for_processes=10)
    _ConvertShard(SETTINGS, enough)._start(plan_for(run), [zipped, refs[1]])
    assert workers == [1]
