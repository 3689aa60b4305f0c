import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.reading.analyze_dataset import RANK_ERROR, Sides, Statistics, compute_statistics

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

LOW = 2**31

# Analyzes each array of numbers of a file, in a process that may crash at its end.
ANALYZE = """
import dataclasses, gc, json, sys
import numpy as np
from recordmill.reading.analyze_dataset import compute_statistics, run_analysis
cases = np.load(sys.argv[1])
with open(sys.argv[2], "w") as file:
    found = {
        name: compute_statistics(len(cases[name]), run_analysis(cases[name]))
        for name in cases.files
    }
    json.dump({name: dataclasses.asdict(each) for name, each in found.items()}, file)
gc.freeze()
"""


def draw_cases():
    """Numbers of images as `read_moments` gives them, by name."""
    rng = np.random.default_rng(5)
    sides = rng.integers(1, 700, (23_456, 2))
    sides[:9000, 0] = 224  # many ties
    pixels = sides.prod(1, keepdims=True)
    sums = rng.integers(0, 256, (len(sides), 3)) * pixels
    many = np.hstack([sides, sums, np.minimum(sums * 200, 255**2 * pixels)])
    # White but for one gray level: next to no variance, and squares of which three sum to more than
    # 2**63.
    side = 2**23
    white = 255 * side**2
    giant = np.array(
        [[side, side, white, white, white - 1, 255 * white, 255 * white, 255 * white - 509]] * 150
    )
    one = np.array([[7, 9, 63, 0, 63 * 255, 63, 0, 63 * 255**2]])
    return {"many": many, "giant": giant, "one": one}


@pytest.fixture(scope="module")
def analyzed(with_tensorflow, run_python, tmp_path_factory):
    folder, cases = tmp_path_factory.mktemp("statistics"), draw_cases()
    np.savez(folder / "cases.npz", **cases)
    ended = run_python(ANALYZE, folder / "cases.npz", folder / "found.json")
    assert ended.returncode == 0, ended.stderr[-2000:]
    return cases, json.loads((folder / "found.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["many", "giant", "one"])
def test_mean_and_variance_are_the_nearest_there_are(analyzed, name):
    numbers, found = analyzed[0][name].tolist(), analyzed[1][name]
    pixels = sum(row[0] * row[1] for row in numbers)
    assert (found["images"], found["pixels"]) == (len(numbers), pixels)
    for color in range(3):
        total, squares = (sum(row[place + color] for row in numbers) for place in (2, 5))
        assert found["mean"][color] == total / pixels
        assert found["variance"][color] == (squares * pixels - total**2) / pixels**2


@pytest.mark.slow
def test_giant_sums_do_not_overflow_and_nothing_cancels(analyzed):
    numbers, found = analyzed[0]["giant"], analyzed[1]["giant"]
    assert sum(map(int, numbers[:, 5])) > 2**63
    assert found["mean"][:2] == [255.0, 255.0]
    assert found["variance"][:2] == [0.0, 0.0]
    assert found["variance"][2] == pytest.approx(2.0**-46, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "column", "side"), [("many", 0, "height"), ("many", 1, "width"), ("one", 0, "height")]
)
@pytest.mark.slow
def test_quantiles_are_within_the_rank_error(analyzed, name, column, side):
    values, found = np.sort(analyzed[0][name][:, column]), analyzed[1][name][side]
    assert (found["least"], found["most"]) == (values[0], values[-1])
    assert len(found["quantiles"]) == 99
    for hundredth, quantile in enumerate(found["quantiles"], start=1):
        below = np.searchsorted(values, quantile, "left") / len(values)
        up_to = np.searchsorted(values, quantile, "right") / len(values)
        one = 1 / len(values)  # a rank is a whole number of images
        assert below - one - RANK_ERROR <= hundredth / 100 <= up_to + one + RANK_ERROR


def findings(images):
    """What TensorFlow Transform would find in images of (pixels, sums, squares)."""
    totals = [sum(image[0] for image in images)]
    totals += [sum(image[1][color] for image in images) for color in range(3)]
    totals += [sum(image[2][color] // LOW for image in images) for color in range(3)]
    totals += [sum(image[2][color] % LOW for image in images) for color in range(3)]
    sides = np.array([1, 1])
    return {
        "totals": np.array(totals),
        "least": sides,
        "most": sides,
        "quantiles": np.ones((2, 99), np.float32),
    }


PICTURES = st.lists(
    st.lists(st.tuples(*[st.integers(0, 255)] * 3), min_size=1, max_size=9), min_size=1, max_size=9
)


@given(PICTURES, st.integers(1, 10**9))
def test_statistics_agree_with_numpys_however_often_the_images_are_there(pictures, times):
    values = [np.array(picture, np.int64) for picture in pictures]
    images = [
        (len(each) * times, (each.sum(0) * times).tolist(), ((each**2).sum(0) * times).tolist())
        for each in values
    ]
    found = compute_statistics(len(images), findings(images))
    everything = np.concatenate(values).astype(np.float64)
    assert found.mean == pytest.approx(everything.mean(0).tolist(), rel=1e-12, abs=1e-12)
    assert found.variance == pytest.approx(everything.var(0).tolist(), rel=1e-9, abs=1e-9)
    assert found.pixels == len(everything) * times
    assert found.images == len(images)


@pytest.mark.parametrize(
    ("height", "width", "size"),
    [((3, 3), (5, 5), (3, 5)), ((3, 4), (5, 5), None), ((3, 3), (4, 5), None)],
)
def test_images_of_one_size_have_a_common_size(height, width, size):
    sides = (Sides(*height, ()), Sides(*width, ()))
    assert Statistics(2, 30, (0.0,) * 3, (0.0,) * 3, *sides).common_size == size
