"""Describes what a failed run has converted, so that people can look at it where it is.

The shards stay in the staging folder. The next run of the same command resumes from them, and
removes this description.
"""

from dataclasses import replace
from itertools import chain

from recordmill import storage
from recordmill.schemas.dataset.file_names import (
    CONFIGURATION,
    LABELS,
    UNPUBLISHED,
)
from recordmill.schemas.dataset.json_values import as_json, to_json
from recordmill.schemas.dataset.marker import Marker, Switch
from recordmill.transforms.planning.run_plan import RunPlan
from recordmill.transforms.planning.runs import RunSettings
from recordmill.transforms.publishing.companions.describe_dataset import (
    describe_record_index,
    describe_report_data,
)
from recordmill.transforms.publishing.staged_dataset import (
    StagedDataset,
    describe_run,
    move_shards,
)


def describe_unpublished(dataset: StagedDataset, plan: RunPlan, run: RunSettings) -> Marker:
    """Writes what readers need into the staging folder; returns the marker that it would have.

    Args:
        dataset: the finished shards.
        plan: the plan of the run.
        run: the run.

    Raises:
        OSError: a file cannot be written.
    """
    labels = plan.dataset.label_map.as_text(dataset.layout.convention.label_lines)
    files = {LABELS: labels.encode(), CONFIGURATION: plan.dataset.config_text.encode()}
    for name, content in chain(describe_report_data(dataset), describe_record_index(dataset)):
        files[name] = b"".join(content)
    for name, whole in files.items():
        storage.write_file(storage.join(dataset.folder, name), whole)
    marker = replace(
        dataset.marker,
        files=tuple(dict.fromkeys((*dataset.marker.files, *files))),
        run=describe_run(dataset, plan, run, plan.notes, {}),
    )
    switch = Switch(tuple(map(tuple, move_shards(dataset))), ())
    pending = {**to_json(marker), "switch": to_json(switch)}
    storage.write_file(storage.join(dataset.folder, UNPUBLISHED), as_json(pending))
    return marker
