"""Labels that hold several classes: why they stop a recognized run."""

from collections.abc import Sequence

from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.inputs.sources.archives import Archives
from recordmill.transforms.inputs.tables.column_contents import separator_in
from recordmill.transforms.planning.explain_unclaimed import as_command
from recordmill.transforms.planning.summary import Summary


def explain_several_classes(
    summary: Summary, settings: DatasetSettings, command: Sequence[str] = ()
) -> str | None:
    """Says why a recognized run stops: texts next to images hold several classes.

    Args:
        summary: what was listed.
        settings: what the dataset is.
        command: the arguments of the command that started the run; empty if Python code did.

    Returns:
        A sentence with the command that takes each text for one class; None if each is one.
    """
    source = settings.source
    if not isinstance(source, Archives) or source.labels != "beside" or source.class_names:
        return None
    separator = separator_in(summary.labels)
    if separator is None:
        return None
    example = min(each for each in summary.labels if separator in each)
    part = source.label_part
    as_one = as_command([*command, "--set", f"source.label_part={part}"], command)
    return (
        f"labels in .{part} such as {example!r:.100} seem to be several classes of an image, and "
        f"one is stored: write one class into each .{part}; if each text is one class: {as_one}"
    )
