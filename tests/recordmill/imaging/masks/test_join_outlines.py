import pytest

from recordmill.imaging.masks.outline import (
    Bitmap,
    FaultyOutline,
    FileIds,
    Joined,
    MaskFile,
    Polygons,
    Runs,
    join_outlines,
)

ONE, OTHER = Polygons(((1.0, 2.0),)), Polygons(((3.0, 4.0), (5.0, 6.0)))
FRACTIONS = Polygons(((0.5, 0.5),), fractions=True)
RUNS, BITMAP = Runs((2, 2), (4,)), Bitmap(1, 2, b"")
FILE, OTHER_FILE = MaskFile("a.png", "a.png"), MaskFile("b.png", "b.png")
FAULTY = FaultyOutline("bad_rle", "why")


@pytest.mark.parametrize(
    ("outlines", "joined"),
    [
        ([ONE], ONE),
        ([ONE, OTHER], Polygons(((1.0, 2.0), (3.0, 4.0), (5.0, 6.0)))),
        ([ONE, FRACTIONS], Joined((ONE, FRACTIONS))),
        ([RUNS, ONE, BITMAP], Joined((RUNS, ONE, BITMAP))),
        ([Joined((RUNS, ONE)), BITMAP], Joined((RUNS, ONE, BITMAP))),
        ([ONE, FAULTY, RUNS], FAULTY),
        ([FileIds(FILE, (3, 1)), FileIds(FILE, (1, 2))], FileIds(FILE, (3, 1, 2))),
        (
            [FileIds(FILE, (3,)), FileIds(OTHER_FILE, (1,))],
            FaultyOutline("bad_mask", "it is in several files"),
        ),
    ],
)
def test_outlines_of_one_object_become_one(outlines, joined):
    assert join_outlines(outlines) == joined
