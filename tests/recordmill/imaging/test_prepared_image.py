import re
from pathlib import Path

from recordmill import imaging
from recordmill.schemas.rejection import REASONS
from recordmill.schemas.settings.images import CHANGES

SOURCE = "".join(
    path.read_text(encoding="utf-8") for path in sorted(Path(imaging.__file__).parent.glob("*.py"))
)


def test_every_change_and_reason_in_the_tables_is_used_and_sorted():
    assert list(CHANGES) == sorted(CHANGES)
    for name in CHANGES:
        assert f'"{name}"' in SOURCE, name
    assert {reason for reason in REASONS["decode"] if f'"{reason}"' not in SOURCE} == set()


def test_no_reason_is_missing_from_the_table():
    assert set(re.findall(r'Rejected\(\s*"decode",\s*"(\w+)"', SOURCE)) <= set(REASONS["decode"])
