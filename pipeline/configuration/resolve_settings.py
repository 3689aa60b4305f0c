"""Fills in the settings that follow from others or from the inputs' files, and checks them."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from recordmill.imaging import find_missing_decoder
from recordmill.pipeline.configuration.check_features import check_features
from recordmill.pipeline.configuration.idle_settings import find_idle
from recordmill.pipeline.configuration.unmoved_features import find_unmoved
from recordmill.schemas.conventions import Convention, convention_names
from recordmill.schemas.dataset.file_names import check_file_name
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.errors import SettingError, UsageError
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.schemas.settings.recipe import (
    NamedLists,
    Recipe,
    list_changed_settings,
    list_settings,
)
from recordmill.schemas.settings.source import Input, ListingSettings
from recordmill.schemas.yaml_core import write_yaml
from recordmill.transforms.inputs.patterns import compile_pattern
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.records.image_functions import digest_code


def complete_settings(settings: DatasetSettings) -> DatasetSettings:
    """Checks settings with each other, and fills in those that follow from others.

    Raises:
        SettingError: two contradict each other, whatever the inputs are.
    """
    layout = ExampleLayout(settings)
    _check_convention(settings)
    check_features(layout)
    completed = settings.complete(layout.convention)
    completed.check()
    _check_installed(completed)
    _check_file_names(ExampleLayout(completed))
    return completed


def _check_convention(settings: DatasetSettings) -> None:
    """Raises SettingError if no convention has the name."""
    if isinstance(settings.convention, str) and settings.convention not in convention_names():
        known = ", ".join(convention_names())
        raise SettingError(
            "convention", f": there is no convention {settings.convention!r}: choose one of {known}"
        )


def _check_installed(settings: DatasetSettings) -> None:
    """Raises SettingError if a decoder is not installed, or RE2 refuses a pattern."""
    if missing := find_missing_decoder(settings.images.formats):
        raise SettingError("images.formats", f": {missing}")
    if settings.splits.group:
        compile_pattern(settings.splits.group, "splits.group", "group")


def resolve_settings(
    settings: DatasetSettings,
    inputs: Sequence[Input],
    output: str,
    note: Callable[[str], None],
    writer: Literal["recordmill", "beam"] = "recordmill",
) -> DatasetSettings:
    """Fills in what only the inputs and the output's name determine.

    Args:
        settings: as `complete_settings` returns them.
        inputs: what to read; listed if the source asks for its files.
        output: the output folder, whose name is used if files need one and the settings have none.
        note: called with each note for the user.
        writer: what writes the files.

    Raises:
        UsageError: the files do not determine a setting, or a setting has no effect.
    """
    try:
        source = settings.source.settle(_list_files(inputs, settings.listing), note)
        if source != settings.source:  # it may give other features now
            settings = replace(settings, source=source)
            check_features(ExampleLayout(settings))
        if not settings.name and "{name" in ExampleLayout(settings).shard_name:
            settings = _name_after_output(output, settings)
    except ValueError as error:
        raise UsageError(str(error)) from None
    idle = find_idle(settings, beam_writes=writer == "beam")
    problems = [str(each) for each in idle if each.is_refused]
    if writer == "beam" and settings.shards.count is None:
        problems.append(
            "shards.count is not set, and --writer=beam needs the number of each split's files: "
            "set it"
        )
    if problems:
        raise UsageError("\n".join(problems))
    for each in idle:
        note(str(each))
    for sentence in find_unmoved(settings):
        note(sentence)
    return settings


def make_recipe(
    settings: DatasetSettings,
    comment: str | None = None,
    lists: NamedLists | None = None,
) -> Recipe:
    """Makes the recipe of a dataset; `config.yaml` begins with the comment, if there is one.

    Functions have a digest of their code, so changed code makes
    another dataset. The files of `exclude` and `corrections` are replaced by digests of their
    content.
    """
    values = list_changed_settings(settings)
    functions = {name: digest_code(each.function) for name, each in settings.features.items()}
    hooks = {key: digest_code(name) for key, name in settings.hooks.items()}
    values |= {key: codes for key, codes in (("functions", functions), ("hooks", hooks)) if codes}
    digests = (lists or NamedLists()).digests
    values = {key: value for key, value in values.items() if key not in digests}
    values |= {key: digest for key, digest in digests.items() if digest}
    in_use = to_json(list_settings(settings))
    written = (comment or "") + write_yaml(in_use)
    return Recipe(values, in_use | digests, written)


def _check_file_names(layout: ExampleLayout) -> None:
    settings = layout.settings
    count = settings.shards.count or 12  # enough to compare indices of two digits with those of one
    indices = range(min(count, 12))
    names = [
        layout.file_name(split, index, count, 1)
        for split in settings.splits.names
        for index in indices
    ]
    own = isinstance(settings.convention, Convention) and not settings.shards.name
    key = "convention.shard_name" if own else "shards.name"
    if len(set(names)) < len(names):
        raise SettingError(
            key,
            f"{layout.shard_name!r} gives several files one name: add {{split}} and {{index}}",
        )
    for name in names:
        check_file_name(name, layout.shard_name, key)


def _name_after_output(output: str, settings: DatasetSettings) -> DatasetSettings:
    """Sets the dataset's name to the output folder's, in letters that file names may have."""
    name = (
        re.sub(r"[^A-Za-z0-9._-]", "_", output.rstrip("/").rpartition("/")[2]).lstrip("._-")
        or "dataset"
    )
    named = replace(settings, name=name)
    _check_file_names(ExampleLayout(named))
    return named


def _list_files(inputs: Sequence[Input], listing: ListingSettings) -> Iterator[ImageRef]:
    # Imports Beam, which most sources do not need here.
    from recordmill.transforms.list_images import (
        list_images,
    )

    # Only the selection of files matters here, not their splits and labels.
    patterns = ListingSettings(include=listing.include, ignore=listing.ignore)
    source = ClassFolders(class_from="none")
    for each in inputs:
        yield from (ref for ref in list_images(each, source, patterns) if type(ref) is ImageRef)
