import pytest

from recordmill.storage.format_size import format_size


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
def test_show_bytes(count, text):
    assert format_size(count) == text
