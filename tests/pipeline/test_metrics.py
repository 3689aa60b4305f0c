"""What a runner's page shows of a running job comes to what the ledger says."""

import apache_beam as beam
import pytest

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.mark.runner
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(
            ("--direct_running_mode=multi_processing", "--direct_num_workers=2"),
            marks=pytest.mark.slow,
        ),
        ("--processes=2",),
    ],
    ids=str,
)
def test_the_metrics_of_two_processes_add_up_to_the_ledger(
    flags, convert, class_folders, picture, tmp_path, monkeypatch
):
    root = class_folders(tmp_path / "photos", {"cat": 12, "dog": 9})
    for number in range(3):
        (root / "cat" / f"text{number}.jpg").write_bytes(b"plain text")
    (root / "dog" / "cut.jpg").write_bytes(picture("cut", size=(64, 64))[:900] + b"\xff\xd9")
    results, run = [], beam.Pipeline.run

    def keep(pipeline, *arguments, **options):
        results.append(run(pipeline, *arguments, **options))
        return results[-1]

    monkeypatch.setattr(beam.Pipeline, "run", keep)
    settings = {"shards.count": 3, "images.reencode": "always"}
    done = convert(root, *flags, settings=settings)
    assert done.code == 0
    metrics = results[0].metrics().query()
    counters = {each.key.metric.name: each.committed for each in metrics["counters"]}
    ledger, splits = done.marker["ledger"], done.marker["splits"].values()
    assert ledger["rejected"] == {"unknown_format": 3, "truncated": 1}
    assert {name: count for name, count in counters.items() if not name.startswith("_")} == {
        "images_written": ledger["written"],
        "bytes_read": done.marker["input_bytes"],
        "bytes_written": done.marker["output_bytes"],
        **{f"rejected_{reason}": count for reason, count in ledger["rejected"].items()},
    }
    (times,) = [each.committed for each in metrics["distributions"]]
    assert times.count == sum(len(split["shards"]) for split in splits)
    assert 0 <= times.min <= times.max <= times.sum
    assert times.sum > 0
