import base64
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.manifests.row_reader import read_row_bytes
from recordmill.transforms.inputs.tables.read_table import TableFormat

DATA = bytes(range(256))
TEXT = base64.b64encode(DATA).decode()


def ref_of(path, packing, content):
    path.write_bytes(content)
    return ImageRef("k", str(path), len(content), "1", length=len(content), packing=packing)


def read(ref, max_bytes=1000):
    return read_row_bytes(ref, "x", TableFormat(), max_bytes)


@pytest.mark.parametrize(
    ("packing", "row"),
    [
        ("csv utf-8 1", f'a,"{TEXT}"\r\n'),
        ("tsv utf-16-le 0", f"{TEXT}\ta\n"),
        ("jsonl utf-8", f'{{"x": "{TEXT}"}}\n'),
        ("jsonl utf-8", f'{{"x": "{TEXT[:76]}\\n{TEXT[76:]}"}}'),
    ],
)
def test_base64_in_a_row(packing, row, tmp_path):
    ref = ref_of(tmp_path / "t", packing, row.encode(packing.split()[1]))
    assert read(ref) == DATA
    with pytest.raises(Rejected, match="too_many_bytes: more than the 255 bytes"):
        read(ref, 255)


@pytest.mark.parametrize(
    ("row", "reason", "detail"),
    [
        ('{"x": "a"}', "bad_row", "t, the row at byte 0, column 'x': it is not valid base64 ("),
        ('{"x": "ä!"}', "bad_row", "t, the row at byte 0, column 'x': it is not valid base64 ("),
        ('{"x": 7}', "changed", "has changed since it was listed"),
        ('{"y": "a"}', "changed", "has changed since it was listed"),
        ("[]", "changed", "has changed since it was listed"),
        ('{"x"', "changed", "has changed since it was listed"),
    ],
)
def test_rows_without_an_image(row, reason, detail, tmp_path):
    with pytest.raises(Rejected) as raised:
        read(ref_of(tmp_path / "t", "jsonl utf-8", row.encode()))
    assert (raised.value.stage, raised.value.reason) == ("read", reason)
    assert detail in raised.value.detail


def test_a_row_of_csv_that_has_changed(tmp_path):
    ref = ref_of(tmp_path / "t", "csv utf-8 2", b"a,b\n")
    with pytest.raises(Rejected, match="changed"):
        read(ref)
    (tmp_path / "t").write_bytes(b"a")
    with pytest.raises(Rejected, match="changed"):
        read(ref)


def test_cells_of_parquet(tmp_path):
    pq.write_table(pa.table({"x": [DATA, None]}), tmp_path / "t")
    ref = ImageRef("k", str(tmp_path / "t"), -1, "1", packing="parquet")
    assert read(ref) == DATA
    for row, bound, reason in ((0, 255, "too_many_bytes"), (1, 999, "bad_row"), (2, 999, "changed")):
        with pytest.raises(Rejected, match=reason):
            read(replace(ref, offset=row), bound)
    with pytest.raises(Rejected, match="vanished"):
        read(replace(ref, uri=str(tmp_path / "gone")))
    (tmp_path / "bad").write_bytes(b"no parquet here, none at all")
    with pytest.raises(Rejected, match="bad_packing"):
        read(replace(ref, uri=str(tmp_path / "bad")))
