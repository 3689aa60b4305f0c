"""`report.json`: what the report shows and no other file of the dataset has; the report itself is made later."""

from collections.abc import Iterable, Iterator
from operator import attrgetter

from recordmill.schemas.dataset.file_names import EXAMPLES, REPORT_DATA
from recordmill.schemas.dataset.json_values import as_json, to_json
from recordmill.schemas.dataset.side_files import ReportData
from recordmill.transforms.publishing.companions.staged_dataset import StagedDataset
from recordmill.transforms.records.change_examples import read_examples


def describe_report_data(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """`report.json`, where the settings ask for a report and there is something to say."""
    if not dataset.settings.report:
        return
    first = sorted((report for report in dataset.reports if not report.index), key=attrgetter("split"))
    data = ReportData(tuple(dataset.remarks), read_examples(dataset.path_of(report, EXAMPLES) for report in first))
    if data != ReportData():
        yield REPORT_DATA, [as_json(to_json(data))]
