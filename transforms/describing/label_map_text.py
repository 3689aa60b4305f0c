"""The label map in the form of TensorFlow's Object Detection API, for conventions whose readers ask for it."""

from collections.abc import Iterable, Iterator

from recordmill.schemas.label_map import LabelMap
from recordmill.transforms.describing.staged_dataset import StagedDataset


def describe_label_map(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """The file that the convention names, e.g. `label_map.pbtxt`; none where it names none."""
    if name := dataset.settings.layout.label_map_file:
        yield name, [LabelMap(dataset.marker["labels"]).as_pbtxt().encode()]
