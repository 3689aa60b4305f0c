"""The label map in the form of TensorFlow's Object Detection API, for conventions whose readers ask for it.

Its readers keep the id 0 for the background and refuse a file in which a class has it (object_detection/utils/
label_map_util.py, `_validate_label_map`). COCO files of other tools often list a class 0 that no box has.
"""

from collections.abc import Iterable, Iterator, Mapping

from recordmill.schemas.label_map import LabelMap
from recordmill.transforms.publishing.companions.staged_dataset import StagedDataset


def describe_label_map(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """The file that the convention names, e.g. `label_map.pbtxt`; none where it names none."""
    if name := dataset.layout.convention.label_map_file:
        counted = {label for split in dataset.marker.splits.values() for label in split.class_counts}
        labels = {label: number for label, number in dataset.marker.labels.items() if number or label in counted}
        yield name, [LabelMap(labels).as_pbtxt().encode()]


def note_background(labels: Mapping[str, int], counts: Mapping[str, int], file: str) -> str:
    """What to say where a class that something has is numbered 0, and a label map is written; else the empty string.

    Args:
        labels: class ids.
        counts: how many there are of each class.
        file: the label map's name; empty: there is none.
    """
    names = [label for label, number in labels.items() if not number and counts.get(label)]
    if not names or not file:
        return ""
    return (
        f"{file} gives {names[0]!r} the id 0, which the Object Detection API keeps for the background, and refuses: "
        "set labels.ids=names to count classes from 1"
    )
