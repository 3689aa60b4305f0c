"""Writes `transform_fn/` for a finished dataset."""

import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from recordmill.reading.analyze.channel_moments import choose_split, read_moments
from recordmill.reading.analyze.image_model import save_image_model
from recordmill.reading.analyze.pixel_statistics import RANK_ERROR, Statistics, compute_statistics
from recordmill.reading.dataset import open_dataset
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.errors import LoadError
from recordmill.storage.transform_fn import DEFAULT_SIZE, contents_digest, fits, publish_transform_fn, read_note

_WANTED = ("tensorflow", "tensorflow_transform")


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result of an analysis.

    Attributes:
        done: whether the analysis ran; False if an earlier one still matches.
        note: the content of `analysis.json`.
        seconds: the time of importing TensorFlow, and of the rest.
    """

    done: bool
    note: Mapping[str, Any]
    seconds: Mapping[str, float]


def check_tensorflow() -> None:
    """Checks for TensorFlow Transform without importing it.

    Raises:
        LoadError: it is not installed.
    """
    if not all(map(find_spec, _WANTED)):
        raise LoadError(
            "an analysis needs TensorFlow Transform, which is not installed: pip install '.[tensorflow]' in a clone"
        )


def analyze_dataset(
    path: str,
    split: str | None = None,
    size: tuple[int, int] | None = None,
    importing: AbstractContextManager[Any] | None = None,
) -> Analysis:
    """Writes `transform_fn/` into a dataset's folder, unless an existing one matches.

    Args:
        path: the dataset's folder, on any of Beam's file systems.
        split: the split to analyse; None: that of an existing analysis if it matches, otherwise `train`.
        size: height and width of the model's images; None: those of an existing analysis if it matches, otherwise
            the size of all images if it is the same, otherwise `DEFAULT_SIZE`.
        importing: entered while TensorFlow is imported, which takes seconds and is noisy.

    Raises:
        RecordmillError: the dataset cannot be analysed, for a reason that a user can fix.
        OSError: something cannot be read or written.
    """
    started = time.monotonic()
    marker = open_dataset(path).require_marker()
    note = read_note(path)
    if note is not None and fits(note, marker, split, size):
        return Analysis(False, note, {"imports": 0.0, "analysis": time.monotonic() - started})
    split = choose_split(marker, split, path)
    numbers = read_moments(path, marker, split)
    check_tensorflow()
    read = time.monotonic()
    with importing or nullcontext():
        _import_tensorflow()
    imported = time.monotonic()
    statistics = compute_statistics(numbers)
    size = size or statistics.common_size or DEFAULT_SIZE
    note = _describe(statistics, marker, split, size)
    with tempfile.TemporaryDirectory(prefix="recordmill-") as folder:
        built = Path(folder) / "model"
        save_image_model(built, statistics, size, marker.labels, marker.plan.settings.labels.get("catch_all"))
        publish_transform_fn(built, note, path)
    imports = imported - read
    return Analysis(True, note, {"imports": imports, "analysis": time.monotonic() - started - imports})


def _import_tensorflow() -> None:
    import tfx_bsl.public.tfxio  # noqa: F401


def _describe(statistics: Statistics, marker: Marker, split: str, size: tuple[int, int]) -> dict[str, Any]:
    """`analysis.json`."""
    return {
        "plan": marker.plan.id,
        "contents": contents_digest(marker, split),
        "split": split,
        "size": size,
        **asdict(statistics),
        "rank_error": RANK_ERROR,
        "labels": marker.labels,
    }
