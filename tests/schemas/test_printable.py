from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.formatting import printable


def test_control_characters_are_written_out():
    assert printable("plain Größe \u732b") == "plain Größe \u732b"
    assert printable("\x1b[31mred\n\u202etxt\udcff") == "\\x1b[31mred\\n\\u202etxt\\udcff"


@given(st.text())
def test_nothing_but_printable_characters_is_left(text):
    assert printable(text).isprintable()
