import pytest

from benchmarks import load, measure, photographs


@pytest.mark.slow
def test_all_readers_deliver_the_same_pixels(tmp_path) -> None:
    tf = pytest.importorskip("tensorflow")
    from benchmarks import feed

    images = photographs.make(40, tmp_path, size=(40, 30))
    folder = str(load.make_dataset(measure.options("").parse_args([]).pipeline, images, tmp_path))
    for size in (None, (16, 16)):
        sums = {
            name: sorted(
                (int(label), float(tf.reduce_sum(tf.cast(image, tf.float64))))
                for image, label in batches
            )
            for name, batches in (
                (name, read(folder, 7, size).unbatch()) for name, read in feed.READERS.items()
            )
        }
        assert len(sums["ours"]) == 40
        assert sums["ours"] == sums["ours_in_order"] == sums["tf_data"]
        assert feed.feed(feed.ours(folder, 7, size)).items() >= {"records": 40, "fed": 33}.items()
