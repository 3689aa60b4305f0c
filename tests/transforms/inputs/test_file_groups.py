"""Patterns that leave out files of one kind."""

import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.inputs.file_groups import ClaimedFiles, FileGroup, patterns_of_all


def group_of(paths):
    group = FileGroup()
    for path in paths:
        group.add(path, ImageRef(path, path))
    return group


TEXTS = [f"training/label_2/{number:06}.txt" for number in range(6)]


@pytest.mark.parametrize(
    ("paths", "left_out", "claimed", "patterns"),
    [
        (TEXTS, TEXTS, [], ["/training/label_2/*.txt"]),
        (TEXTS[:3], TEXTS[:3], [], [f"/{path}" for path in TEXTS[:3]]),
        (TEXTS, TEXTS[:4], [], [f"/{path}" for path in TEXTS[:4]]),
        (TEXTS, TEXTS, ["training/label_2/x.txt"], [f"/{path}" for path in TEXTS]),
        (TEXTS, TEXTS, ["training/x.txt"], ["/training/label_2/*.txt"]),
        ([*TEXTS, "a.txt"], [*TEXTS, "a.txt"], [], [f"/{path}" for path in (*TEXTS, "a.txt")]),
        (["0.json", "1.json", "2.json", "3.json"], ["0.json", "1.json", "2.json", "3.json"], [],
         ["/*.json"]),
    ],
)  # fmt: skip
def test_files_of_one_folder_are_left_out_by_a_pattern(paths, left_out, claimed, patterns):
    others = ClaimedFiles()
    for path in claimed:
        others.add(path)
    assert patterns_of_all(group_of(paths), left_out, others) == patterns


def test_images_in_the_same_folder_are_kept():
    found = patterns_of_all(group_of(TEXTS), TEXTS, ClaimedFiles(), has_images=True)
    assert found == [f"/{path}" for path in TEXTS]
