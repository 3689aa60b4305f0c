from recordmill.reading.verify_shard import Finding


def test_the_line_names_shard_record_byte_and_source():
    finding = Finding("data", "the data do not fit", "train-0", 1234, 5678901, "cat/7.jpg")
    assert (
        str(finding) == "train-0, record 1,234 at byte 5,678,901 (cat/7.jpg): the data do not fit"
    )
    assert str(Finding("count", "too few", "train-0")) == "train-0: too few"
    assert str(Finding("duplicate", "two of a kind")) == "two of a kind"


def test_notes_do_not_fail():
    assert Finding("members", "").is_note
    assert not Finding("data", "").is_note
