import pytest

from recordmill.schemas.packing import Gzip, NamedMember, ParquetCell, TextCell, ZipMember, parse_packing

PACKINGS = {
    "gzip": Gzip(),
    "gzip_records": Gzip(has_checksums=True),
    "member:in/a: b.npy": NamedMember("in/a: b.npy"),
    "zip:8:31:100:200:0012abcd": ZipMember(8, 31, 100, 200, 0x12ABCD),
    "csv utf-8 0": TextCell("csv", "utf-8", 0),
    "tsv utf-16-le 12 gzip": TextCell("tsv", "utf-16-le", 12, is_gzip=True),
    "jsonl utf-8": TextCell("jsonl", "utf-8"),
    "jsonl utf-8 gzip": TextCell("jsonl", "utf-8", is_gzip=True),
    "parquet": ParquetCell(),
}


@pytest.mark.parametrize(("text", "packing"), PACKINGS.items())
def test_a_packing_has_the_text_that_plan_ids_hold(text, packing):
    assert (str(packing), parse_packing(text)) == (text, packing)


@pytest.mark.parametrize("text", ["rot13", "zip", "zip:0:1:2:3", "tar:0:1:2:3:4", "csv utf-8", "jsonl utf-8 zip"])
def test_another_packing_is_a_mistake_of_the_source(text):
    with pytest.raises(ValueError, match=f"there is no packing '{text}'"):
        parse_packing(text)
