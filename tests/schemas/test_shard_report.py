from dataclasses import replace

from apache_beam import coders

from recordmill.schemas.annotation_totals import AnnotationTotals
from recordmill.schemas.record_coder import RecordCoder, register_record
from recordmill.schemas.shard_report import ShardReport

REPORT = ShardReport(
    split="train",
    index=3,
    references=5,
    digest="ef" * 32,
    records=4,
    bytes=2**40,
    sha256="ab",
    sidecar_sha256="cd",
    input_bytes=2**41,
    classes={"ü": 4},
    rejected={"truncated": 1},
    changes={"rotated": 2},
    boxes={"listed": 3},
    annotations=AnnotationTotals(faulty={"outside": {"ü": 1}}, examples={"outside": "a box"}),
    reused=True,
    problem="the disk is full",
)


def test_beam_carries_it_as_a_record():
    register_record(ShardReport)
    coder = coders.registry.get_coder(ShardReport)
    assert coder == RecordCoder(ShardReport)
    assert coder.decode(coder.encode(REPORT)) == REPORT


def test_it_comes_back_from_plain_values_and_from_those_of_an_earlier_version():
    plain = replace(REPORT, milliseconds=12).as_dict()
    assert ShardReport.from_dict(plain) == REPORT
    del plain["annotations"]
    assert ShardReport.from_dict(plain).annotations == AnnotationTotals()
