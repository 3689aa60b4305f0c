import pytest

from recordmill.schemas.formatting import format_count, format_size


def test_one_and_many():
    counted = [(1, "image"), (0, "row"), (2_000, "box"), (1, "class"), (2, "class")]
    assert [format_count(*each) for each in counted] == ["1 image", "0 rows", "2,000 boxes", "1 class", "2 classes"]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.0 KiB"),
        (1.5 * 2**20, "1.5 MiB"),
        (2**40, "1.0 TiB"),
        (2**51, "2,048.0 TiB"),
    ],
)
def test_sizes(count, text):
    assert format_size(count) == text
