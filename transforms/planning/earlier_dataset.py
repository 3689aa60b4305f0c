"""Earlier datasets: each is opened once, and passed with its marker to the steps that need it."""

from dataclasses import dataclass

from recordmill.schemas.dataset.file_names import MARKER
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.errors import LoadError, UsageError
from recordmill.storage import exists, join
from recordmill.storage.dataset_files import (
    StrayNameError,
    find_marker,
    find_named,
    stamp_marker,
)


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


@dataclass(frozen=True, slots=True)
class EarlierNames:
    """The earlier datasets that a run names.

    Attributes:
        reuse: folders whose images may be stored again.
        updated: the output, if its dataset is to be updated; empty: none is.
        against: the dataset with which `expect` compares; empty: the one that is replaced.
    """

    reuse: tuple[str, ...] = ()
    updated: str = ""
    against: str = ""


@dataclass(frozen=True, slots=True)
class EarlierDatasets:
    """The earlier datasets of a run; all were opened when it began.

    Attributes:
        reuse: the datasets whose records may be taken, the updated one last.
        updated: the dataset that the run updates; None without one.
        against: the dataset with which `expect` compares; None: the one that is replaced.
        reusable: those of `reuse` that fit the settings.
        notes: on each of the others.
        problem: why a run cannot use them; None if it can.
    """

    reuse: tuple[EarlierDataset, ...] = ()
    updated: EarlierDataset | None = None
    against: EarlierDataset | None = None
    reusable: tuple[ReusableDataset, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str | None = None


def open_earlier_datasets(names: EarlierNames, unit: str, seed: int) -> EarlierDatasets:
    """Opens the datasets that a run names.

    Args:
        names: their folders.
        unit: what an Example of the new dataset is made from.
        seed: the seed of the new dataset.

    Raises:
        LoadError: one of them cannot be used.
        UsageError: one of them does not exist, or has another unit or seed.
    """
    against = updated = None
    if names.against:
        against = _open_named("--against", names.against)
    if names.updated and exists(join(names.updated, MARKER)):
        updated = _open_named("--update", names.updated)
    named = [("--reuse", _open_named("--reuse", folder)) for folder in names.reuse]
    if updated is not None:
        named.append(("--update", updated))
    for flag, each in named:
        marker = each.marker
        theirs, ours = (marker.unit, marker.plan.for_readers.seed), (unit, seed)
        if theirs != ours:
            raise UsageError(
                f"{flag}: unit and seed of {each.folder} are {theirs}, not {ours}: set seed, or "
                f"remove {flag}"
            )
    reuse = tuple({each.folder: each for _, each in named}.values())
    return EarlierDatasets(reuse, updated, against)


def _open_named(flag: str, folder: str) -> EarlierDataset:
    """Opens the dataset that a flag names, or its current version."""
    named = find_named(folder)
    try:
        return EarlierDataset(named.folder, named.read_marker())
    except StrayNameError as error:
        raise LoadError(f"{flag}: {error}: name another dataset, or remove the flag") from None
    except (FileNotFoundError, NotADirectoryError, LoadError) as error:
        why = f": {error}" if isinstance(error, LoadError) else ""
        raise UsageError(
            f"{flag}: {named.folder} holds no finished dataset{why}: name one, or remove the flag"
        ) from None
