"""Fills in what only the files determine, such as the types of a table's columns, before the job."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from recordmill.pipeline.configuration.config import ConfigError
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.settings.listing import Input, ListingSettings
from recordmill.transforms.dataset_settings import DatasetSettings
from recordmill.transforms.inputs.sources import Source
from recordmill.transforms.list_images import list_images


@dataclass(frozen=True, slots=True)
class _WholeFiles(Source):
    """Every file is one reference to itself."""

    def refer(self, path: str, file: ImageRef) -> Iterator[ImageRef]:
        yield file


def resolve_source(
    settings: DatasetSettings, plain: dict[str, Any], inputs: Sequence[Input], note: Callable[[str], None]
) -> tuple[DatasetSettings, dict[str, Any]]:
    """Fills in the source's settings, in `settings` and in the same as plain values.

    `note` is called with notes for the user.

    Raises:
        ConfigError: the files do not determine it; the message says why.
    """
    try:
        source = settings.source.settle(_list_files(inputs, settings.listing), note)
        if source is settings.source:
            return settings, plain
        settings = replace(settings, source=source)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return settings, {**plain, "source": {"kind": plain["source"]["kind"], **asdict(source)}}  # type: ignore[call-overload]


def _list_files(inputs: Sequence[Input], listing: ListingSettings) -> Iterator[ImageRef]:
    # Of the listing, only the selection of files matters here, not their splits.
    patterns = ListingSettings(include=listing.include, ignore=listing.ignore, classes_known=True)
    for each in inputs:
        yield from (ref for ref in list_images(each, _WholeFiles(), patterns) if not ref.status)
