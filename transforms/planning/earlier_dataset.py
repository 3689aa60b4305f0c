"""Earlier datasets: each is opened once, and passed with its marker to the steps that need it."""

from dataclasses import dataclass

from recordmill.schemas.dataset.marker import Marker
from recordmill.storage.dataset_files import find_marker, stamp_marker


@dataclass(frozen=True, slots=True)
class EarlierDataset:
    """A finished dataset that has been opened.

    Another run may replace it at any time. A step that must know whether it is still there reads
    its folder again, in a function whose name says why.

    Attributes:
        folder: its folder.
        marker: its marker as it was read.
    """

    folder: str
    marker: Marker

    def __hash__(self) -> int:
        return hash((self.folder, self.marker.run.id))


def open_earlier(folder: str) -> EarlierDataset | None:
    """Opens the dataset in a folder; returns None if there is none that can be read.

    Raises:
        OSError: the folder's store does not answer.
    """
    if stamp_marker(folder) is None:  # most outputs have none
        return None
    marker = find_marker(folder)
    return None if marker is None else EarlierDataset(folder, marker)


@dataclass(frozen=True, slots=True)
class ReusableDataset:
    """An earlier dataset whose records may be copied.

    Attributes:
        dataset: the dataset.
        same_source: whether the same settings read its sources, so an unchanged source gives the
            same content.
        same_images: whether a conversion would store the same images, so other records can contain
            them.
        same_files: whether the same records give the same file.
    """

    dataset: EarlierDataset
    same_source: bool
    same_images: bool
    same_files: bool = False
