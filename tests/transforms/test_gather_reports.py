from collections import Counter
from dataclasses import replace

from recordmill.schemas.dataset.totals import RowTotals, ShardReport
from recordmill.transforms.convert_shards import gather_reports

REPORTS = [
    ShardReport(
        "train",
        index,
        3,
        RowTotals(records=3, classes=Counter(cat=3)),
        {},
        "ab",
        records=3,
    )
    for index in range(4)
]


def test_parts_are_added_up_and_stay_as_they_are():
    parts = [gather_reports(REPORTS[:2]), gather_reports(REPORTS[2:3])]
    whole = gather_reports([*parts, REPORTS[3]])
    assert whole == gather_reports(REPORTS)
    assert (whole.splits["train"].classes, len(whole.reports)) == ({"cat": 12}, 4)
    assert (parts[0].splits["train"].classes, len(parts[0].reports)) == ({"cat": 6}, 2)
    assert REPORTS[0].rows.classes == {"cat": 3}


def test_what_finds_copies_is_kept_by_no_total():
    finished = gather_reports([replace(REPORTS[0], contents=bytes(24))])
    assert finished.reports[0].contents == b""
