import json
import sys

import pytest

from benchmarks import measure, photographs, scale

FLOWS = {scale.PLAN: 5_000, scale.SHUFFLE: 160, scale.REPORTS: 900}


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


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """Replaces the runs: `bend` is what the millionth part of the references' square adds to a
    straight line."""
    bend, others, order = [0.0], [0.0], []

    def run_once(images, count, work, flags):
        order.append(count)
        crooked = 1 + bend[0] * count / 1e6
        each = {name: (100 + count) * crooked for name in scale.CHECKED}
        stages = {f"converting_{what}": count / 1_000 for what in ("cpu", "read", "written")}
        return {
            **each,
            **stages,
            "record_bytes": 2.0 * count,
            "sidecar_bytes": 1.0 * count,
            "others": others[0],
        }

    monkeypatch.setattr(scale, "run_once", run_once)
    monkeypatch.setattr(scale, "small_flags", lambda images: [])
    monkeypatch.setattr(photographs, "make", lambda *words: tmp_path)
    return bend, others, order


def outcome(capsys, tmp_path, *words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["scale", "--work", str(tmp_path), "--check", *words])
        with pytest.raises(SystemExit) as ended:
            scale.main()
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err, int(ended.value.code or 0)


def test_a_straight_line_holds(fake, capsys, tmp_path):
    _, _, order = fake
    result, _, code = outcome(capsys, tmp_path, "--runs", "2")
    assert code == 0
    assert order[:6] == [10_000, 10_000, 100_000, 100_000, 300_000, 1_000_000]
    assert order[6:] == [200, 2_000] * 3
    assert result["lines"]["peak_rss"] == [pytest.approx(100), pytest.approx(1)]
    assert result["measured_to_predicted"]["1000000"] == dict.fromkeys(scale.CHECKED, 1.0)
    assert result["photographs"]["default"]["converting_cpu"] == pytest.approx(0.001)
    written = json.loads((tmp_path / "scale-prediction.json").read_text())
    assert written["fitted_on"] == [10_000, 100_000]
    assert written["predicted"]["300000"]["marker_bytes"] == pytest.approx(300_100)


def test_the_prediction_is_written_before_it_is_tried(fake, capsys, tmp_path, monkeypatch):
    file, seen = tmp_path / "seen.json", []
    once = scale.run_once

    def looking(images, count, work, flags):
        seen.append((count, file.exists()))
        return once(images, count, work, flags)

    monkeypatch.setattr(scale, "run_once", looking)
    words = ("--fit", "10", "20", "--predict", "40", "--runs", "1", "--photographs_count", "0")
    result, _, _ = outcome(capsys, tmp_path, *words, "--prediction", str(file))
    assert seen == [(10, False), (20, False), (40, True)]
    assert "photographs" not in result


def test_what_is_not_straight_fails(fake, capsys, tmp_path):
    bend, _, _ = fake
    bend[0] = 1.0
    result, captured, code = outcome(capsys, tmp_path, "--runs", "1", "--photographs_count", "0")
    assert code == 1
    assert result["measured_to_predicted"]["1000000"]["marker_bytes"] > 1.25
    assert "marker_bytes of 1,000,000 references is" in captured


def test_seconds_by_the_clock_mean_nothing_where_others_are_at_work(fake, capsys, tmp_path):
    _, others, _ = fake
    far = {300_000: {**dict.fromkeys(scale.CHECKED, 1.0), "seconds": 1.5}}
    assert scale.missed(far, {10_000: 0.1}) == [
        "seconds of 300,000 references is 1.50 of what was predicted"
    ]
    assert scale.missed(far, {10_000: 0.1, 300_000: 0.9}) == []
    others[0] = 0.9
    _, captured, code = outcome(capsys, tmp_path, "--runs", "1", "--photographs_count", "0")
    assert code == 0
    assert "seconds by the clock are not checked" in captured


@pytest.mark.slow
def test_a_run_that_lost_images_is_not_measured(tmp_path, monkeypatch):
    images = photographs.make(6, tmp_path, size=scale.SIZE, classes=2)
    monkeypatch.setattr(scale.frames, "count", lambda folder: (5, 9))
    with pytest.raises(measure.BenchmarkError, match="5 records for 6 images"):
        scale.run_once(images, 6, tmp_path, ["--set", "shards.count=1"])
