"""Second images of pairs: why they stop a recognized run, or what to know about them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from recordmill.schemas.formatting import format_count
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.recipe import list_changed_settings
from recordmill.schemas.yaml_core import write_yaml_line
from recordmill.transforms.inputs.listed_pairs import SecondImages
from recordmill.transforms.inputs.sources.source import ReadsMembers
from recordmill.transforms.planning.explain_unclaimed import as_command


def explain_pairs(
    found: Sequence[SecondImages], settings: DatasetSettings, command: Sequence[str] = ()
) -> str | None:
    """Says why a recognized run stops: second images would be taken for images of their own.

    Args:
        found: the second images, of all inputs.
        settings: what the dataset is.
        command: the arguments of the command that started the run; empty if Python code did.

    Returns:
        A sentence with the commands that leave either side out; None if there are none.
    """
    if not found:
        return None
    first = found[0]
    said = "masks and other second images are not stored, and are not classes"
    if first.both is not None:
        said = "second images are not classes"
    if first.may_be_single:
        said = "one image is stored of each thing"
    return f"{first.place}: {first.why}: {said}; {_advise(first, settings, command)}"


def _advise(found: SecondImages, settings: DatasetSettings, command: Sequence[str]) -> str:
    ways = []
    for kept, text in found.ways:
        flags = list(command)
        for key, value in _list_settings(orjson.loads(text), settings):
            is_word = isinstance(value, str) and value.replace("_", "").isalpha()
            text = value if is_word else orjson.dumps(value).decode()
            flags += ["--set", f"{key}={text}"]
        what = f"{kept} alone" if len(found.ways) > 1 else "the other images alone"
        ways.append(f"to convert {what}: {as_command(flags, command)}")
    if found.both is not None:
        flags = list(command)
        for key, value in _list_settings(orjson.loads(found.both), settings):
            flags += ["--set", f"{key}={write_yaml_line(value) if value else ''}"]
        ways.append(f"to store both in one record: {as_command(flags, command)}")
    if found.may_be_single:
        flags = _take_as_images(settings, command)
        ways.append(f"if they are images of their own: {as_command(flags, command)}")
    return "; ".join(ways) or "move them into a folder of their own"


def _take_as_images(settings: DatasetSettings, command: Sequence[str]) -> list[str]:
    """Returns the arguments with the settings in use, so that nothing is recognized."""
    changed = list_changed_settings(settings)["source"]
    given = {f"source.{name}": write_yaml_line(value) for name, value in changed.items()}
    for key, splits in (
        ("splits.from_folders", settings.splits.from_folders),
        ("splits.from_source", settings.splits.from_source),
    ):
        if splits:
            given[key] = orjson.dumps(dict(splits)).decode()
    if "layout=auto" in command:
        given["layout"] = '""'
    flags = [*command]
    for key, value in given.items():
        flags += ["--set", f"{key}={value}"]
    return flags


def _list_settings(
    given: Mapping[str, Any], settings: DatasetSettings
) -> Iterator[tuple[str, Any]]:
    """Yields settings by their paths in YAML; patterns join those in use."""
    for key, value in given.items():
        if key == "ignore":
            yield key, [*settings.ignore, *value]
            continue
        if not isinstance(value, Mapping):
            yield key, value
            continue
        members: Sequence[str] = ()
        if isinstance(settings.source, ReadsMembers):
            members = settings.source.members
        for name, each in value.items():
            is_joined = name == "members" and members
            yield f"{key}.{name}", [*members, *each[1:]] if is_joined else each


def describe_pairs(found: Sequence[SecondImages]) -> Iterator[str]:
    """Yields a sentence on the second images of each input."""
    for each in found:
        images = format_count(each.count, "image")
        yield f"{images} may be masks or other second images: {each.why}."
