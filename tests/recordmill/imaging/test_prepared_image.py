import re
from pathlib import Path

from recordmill import imaging
from recordmill.imaging.bad_image import REASONS
from recordmill.imaging.prepared_image import CHANGES

SOURCE = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(imaging.__file__).parent.glob("*.py")))


def test_every_change_and_reason_in_the_tables_is_used_and_sorted():
    assert list(CHANGES) == sorted(CHANGES)
    for name in [*CHANGES, *REASONS]:
        assert len(re.findall(f'"{name}"', SOURCE)) >= 2, name


def test_no_reason_is_missing_from_the_table():
    assert set(re.findall(r'BadImage\(\s*"(\w+)"', SOURCE)) <= set(REASONS)
