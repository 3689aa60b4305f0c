import math

import pytest

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.box_units import have_fractional_sides, refuse_fractions


@pytest.mark.parametrize(
    "sides",
    [[], [0, 0, 1, 1], [0.5, 0.5, 2, 2], [-0.1, 0, 0.5, 0.5], [math.nan] * 4, [0, 0, 0.5, 1.01]],
    ids=str,
)
def test_pixels(sides):
    assert not have_fractional_sides(sides)
    refuse_fractions([sides])


@pytest.mark.parametrize(
    "sides", [[0, 0, 0.5, 1], [0.1, 0.2, 0.9, 1.0005], [0.5, math.nan]], ids=str
)
def test_fractions(sides):
    assert have_fractional_sides(sides)
    with pytest.raises(Rejected, match="its boxes are fractions of the image"):
        refuse_fractions([sides])
