import io
import struct

import pytest
from rich.console import Console

from recordmill.pipeline.inspect import record_view, show_values, summary_view
from recordmill.reading.dataset import open_dataset
from recordmill.reading.inspect_dataset import read_record, summarize_dataset

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def render(*parts):
    stream = io.StringIO()
    console = Console(file=stream, width=120, markup=False)
    for part in parts:
        console.print(part)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_labels_have_bars_in_the_order_of_their_ids(tmp_path, convert_folders, monkeypatch):
    dataset = open_dataset(str(convert_folders(tmp_path, {"dog": 2, "cat": 4})))
    lines = render(*summary_view(summarize_dataset(dataset)))
    start = next(number for number, line in enumerate(lines) if line.startswith("id"))
    cat, dog = lines[start + 1 : start + 3]
    assert cat.split()[:2] == ["0", "cat"]
    assert dog.split()[:2] == ["1", "dog"]
    assert cat.count("\u2501") == 24
    assert dog.count("\u2501") == 12
    monkeypatch.setattr("recordmill.pipeline.inspect._MOST_LABELS", 1)
    assert any(
        "and 1 further labels" in line for line in render(*summary_view(summarize_dataset(dataset)))
    )


def test_a_record_says_where_it_is_and_what_it_holds(tmp_path, convert_folders):
    dataset = open_dataset(str(convert_folders(tmp_path)))
    lines = render(record_view(read_record(dataset, "train", 0)))
    assert lines[0].startswith("train:0  record 0 of train-00000-of-0000")
    assert lines[1].startswith("from ")
    assert lines[1].endswith(", untouched")
    assert any(line.split()[2:3] == ["JPEG,"] for line in lines)


def test_values():
    assert show_values([]) == "no value"
    assert show_values([1, 2]) == "1, 2"
    assert show_values([0.1]) == "0.1"
    assert show_values(list(range(100)), 3) == "0, 1, 2, ... 100 values"
    assert show_values([b"text"]) == "text"
    assert show_values([b"a" * 200]) == "a" * 100 + "... 200 characters"
    assert (
        show_values([struct.pack("<4I", *[2**32 - 1] * 4)])
        == "ff ff ff ff ff ff ff ff ..., 16 bytes"
    )
    assert show_values([b"\xff\xd8\xff" + bytes(40)]) == "JPEG, 43 bytes"
