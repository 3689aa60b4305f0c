"""Labels that hold several classes: why they stop a recognized run."""

from collections.abc import Sequence

from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.inputs.image_classes import WITH_SEVERAL_LABELS
from recordmill.transforms.inputs.sources.source import ReadsCellLabels, ReadsTextLabels
from recordmill.transforms.inputs.tables.column_contents import SEPARATORS, separator_in
from recordmill.transforms.planning.explain_unclaimed import as_command
from recordmill.transforms.planning.summary import Summary


def explain_several_classes(
    summary: Summary, settings: DatasetSettings, command: Sequence[str] = ()
) -> str | None:
    """Says why a recognized run stops: texts next to images, or cells, hold several classes.

    Args:
        summary: what was listed.
        settings: what the dataset is.
        command: the arguments of the command that started the run; empty if Python code did.

    Returns:
        A sentence with the command that takes each text for one class; None if each is one.
    """
    source = settings.source
    if isinstance(source, ReadsTextLabels) and source.text_part is not None:
        return _explain_texts(source.text_part, summary, command)
    if isinstance(source, ReadsCellLabels) and source.class_column is not None:
        return _explain_cells(source.class_column, summary, command)
    return None


def _explain_texts(part: str, summary: Summary, command: Sequence[str]) -> str | None:
    """Says that texts next to images in archives hold several classes."""
    separator = separator_in(summary.labels)
    if separator is None:
        return None
    example = min(each for each in summary.labels if separator in each)
    as_one = as_command([*command, "--set", f"source.label_part={part}"], command)
    return (
        f"labels in .{part} such as {example!r:.100} seem to be several classes of an image, and "
        f"one is stored: write one class into each .{part}; if each text is one class: {as_one}"
    )


def _explain_cells(column: str, summary: Summary, command: Sequence[str]) -> str | None:
    """Says that some cells of a table hold several classes that others hold alone."""
    for separator in SEPARATORS:
        joined = [each for each in sorted(summary.labels) if separator in each]
        for example in joined:
            parts = {part.strip() for part in example.split(separator)}
            if parts <= summary.labels - {example}:
                return _ask_about_cells(column, example, separator, command)
    return None


def _ask_about_cells(column: str, example: str, separator: str, command: Sequence[str]) -> str:
    as_list = [
        "source.columns.label=",
        f"source.columns.labels={column}",
        f'source.separator="{separator}"',
        f"convention={WITH_SEVERAL_LABELS}",
    ]
    ways = {
        "to store several classes": as_list,
        "if each cell is one class": [f"source.columns.label={column}"],
    }
    advice = []
    for what, settings in ways.items():
        flags = list(command)
        for each in settings:
            flags += ["--set", each]
        advice.append(f"{what}: {as_command(flags, command)}")
    return (
        f"cells of {column} such as {example!r:.100} seem to be several classes of an image, and "
        f"one is stored: {'; '.join(advice)}"
    )
