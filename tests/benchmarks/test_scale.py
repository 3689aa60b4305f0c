import pytest

from benchmarks import measure, photographs, scale


@pytest.mark.slow
def test_a_real_run_is_measured_in_all_its_parts(tmp_path):
    images = photographs.make(240, tmp_path, size=scale.SIZE, classes=2)
    flags = scale.small_flags(images)
    (option, setting) = flags
    mean = sum(path.stat().st_size for path in (images / "class_00").iterdir()) / 120
    assert (option, setting) == ("--set", f"shards.size={round(scale.IMAGES_A_SHARD * mean)}B")
    found = scale.run_once(images, 240, tmp_path, ["--set", "shards.count=3"])
    assert (found["shards"], found["shuffled_bytes"] > 240 * 50) == (6, True)
    assert found["marker_bytes"] > 6 * 300
    assert 0 < found["plan_bytes"] < 20_000
    assert found["record_bytes"] > sum(path.stat().st_size for path in images.rglob("*.jpg"))
    assert found["peak_rss"] > 50e6
    assert 0 < found["converting_cpu"] < found["cpu_seconds"]
    assert not (tmp_path / "output").exists()
    assert set(scale.CHECKED) <= set(found)


@pytest.mark.slow
def test_a_run_that_lost_images_is_not_measured(tmp_path, monkeypatch):
    images = photographs.make(6, tmp_path, size=scale.SIZE, classes=2)
    monkeypatch.setattr(scale.frames, "count", lambda folder: (5, 9))
    with pytest.raises(measure.BenchmarkError, match="5 records for 6 images"):
        scale.run_once(images, 6, tmp_path, ["--set", "shards.count=1"])
