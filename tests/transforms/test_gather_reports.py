from collections import Counter
from dataclasses import replace

from gather import gather_reports

from recordmill.schemas.dataset.totals import AnnotationTotals, RowTotals, ShardReport
from recordmill.transforms.convert_shards import GatherReports

REPORTS = [
    ShardReport("train", index, 3, RowTotals(records=3, classes=Counter(cat=3)), AnnotationTotals(), "ab", records=3)
    for index in range(4)
]


def test_parts_are_added_up_in_place_and_reports_stay_as_they_are():
    combine = GatherReports()
    first, second = combine.create_accumulator(), combine.create_accumulator()
    for report in REPORTS[:2]:
        assert combine.add_input(first, report) is first
    combine.add_input(second, gather_reports(REPORTS[2:]))
    whole = combine.extract_output(combine.merge_accumulators([first, second]))
    assert whole is first
    assert whole == gather_reports(REPORTS)
    assert (whole.splits["train"].classes, len(whole.reports)) == ({"cat": 12}, 4)
    assert REPORTS[0].rows.classes == {"cat": 3}


def test_what_finds_copies_is_kept_by_no_total():
    finished = gather_reports([replace(REPORTS[0], contents=bytes(24))])
    assert finished.reports[0].contents == b""
