from recordmill.schemas.format_count import format_count


def test_one_and_many():
    counted = [(1, "image"), (0, "row"), (2_000, "box"), (1, "class"), (2, "class")]
    assert [format_count(*each) for each in counted] == ["1 image", "0 rows", "2,000 boxes", "1 class", "2 classes"]
