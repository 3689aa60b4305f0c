import pickle
from concurrent.futures import ThreadPoolExecutor

from recordmill.schemas.dataset.price import Price
from recordmill.transforms.planning.progress import Progress
from recordmill.transforms.planning.runs import RunSettings

PLACES = {"output": "out", "outcome_file": ""}


def test_counts_from_many_threads_add_up():
    progress = Progress()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(200):
            pool.submit(progress.add_done, 2)
            pool.submit(progress.add_listed, 3)
    assert (progress.done, progress.listed) == (400, 600)


def test_a_pickled_copy_is_the_same_in_this_process():
    progress = Progress()
    assert pickle.loads(pickle.dumps(progress)) is progress
    sent = pickle.dumps(progress)
    name = progress.name
    del progress
    there = pickle.loads(sent)
    assert (there.name, there.done) == (name, 0)


def test_two_runs_do_not_share_it():
    one, other = RunSettings(run_id="a", **PLACES), RunSettings(run_id="b", **PLACES)
    one.progress.add_done(3)
    assert (one.progress.done, other.progress.done) == (3, 0)


def test_a_run_costs_what_its_workers_report_too(monkeypatch):
    now = iter([0.0, 10.0, 40.0])
    monkeypatch.setattr("recordmill.transforms.planning.progress.time.monotonic", lambda: next(now))
    monkeypatch.setattr("recordmill.transforms.planning.progress._cpu_seconds", lambda: 20.0)
    monkeypatch.setattr("recordmill.transforms.planning.progress.peak_memory", lambda: 300)
    progress = Progress()
    assert progress.price(7, 8) is None  # this process did not do all of the run
    progress.begin()
    progress.add_done(1, cpu_seconds=1.5)
    progress.add_done(1, cpu_seconds=2)
    assert progress.price(7, 8) == Price(
        cpu_seconds=3.5, memory=300, bytes_read=7, bytes_shuffled=None, bytes_written=8, minutes=0.5
    )


def test_stages_take_the_time_from_one_to_the_next(monkeypatch):
    now = iter([10.0, 12.5, 20.0, 21.0])
    monkeypatch.setattr("recordmill.transforms.planning.progress.time.monotonic", lambda: next(now))
    progress = Progress()
    progress.begin()
    progress.enter("converting")
    progress.enter("publishing")
    assert progress.stage == "publishing"
    assert progress.seconds() == {"listing": 2.5, "converting": 7.5, "publishing": 1.0}


def test_a_process_that_came_in_later_knows_no_times():
    progress = Progress()
    progress.enter("publishing")
    assert (progress.stage, progress.seconds()) == ("publishing", {})
