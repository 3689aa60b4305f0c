import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from recordmill.schemas import formatting
from recordmill.schemas.formatting import (
    escape_controls,
    escape_json,
    format_count,
    format_size,
    load_template,
    printable,
)

PACKAGE = Path(formatting.__file__).parents[1]


def test_one_and_many():
    counted = [(1, "image"), (0, "row"), (2_000, "box"), (1, "class"), (2, "class")]
    assert [format_count(*each) for each in counted] == [
        "1 image",
        "0 rows",
        "2,000 boxes",
        "1 class",
        "2 classes",
    ]


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


def test_control_characters_are_written_out():
    assert printable("plain Größe \u732b") == "plain Größe \u732b"
    assert printable("\x1b[31mred\n\u202etxt\udcff") == "\\x1b[31mred\\n\\u202etxt\\udcff"


CONTROLS = [*range(9), *range(11, 32), *range(127, 160), 0x061C, 0x200E, 0x202E, 0x2066, 0x2028]


def test_lines_and_joined_letters_stay_and_controls_do_not():
    text = "a\tb\nc \u3000 \u00a0 \U0001f469\u200d\U0001f680"
    assert escape_controls(text) == text
    for code in CONTROLS:
        shown = escape_controls(f"a{chr(code)}b")
        assert shown.isascii()
        assert shown.isprintable()
        line = json.dumps({"name": f"a{chr(code)}b"}, ensure_ascii=False)
        assert escape_json(line).isprintable()
        assert json.loads(escape_json(line)) == {"name": f"a{chr(code)}b"}


@given(st.text())
def test_nothing_but_printable_characters_is_left(text):
    assert printable(text).isprintable()


@pytest.fixture
def render(tmp_path, monkeypatch):
    """Renders a text as a template of this name, in a package of its own."""

    def render(name, text, values, **filters):
        folder = tmp_path / f"documents_{tmp_path.name}"
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / name).write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        return load_template(folder.name, name, **filters).render(values)

    return render


def test_numbers_and_names_have_filters(render):
    text = (
        "{{ n|number }} {{ n|count('box') }} {{ 1|plural('box') }} {{ n|bytes }} {{ c|classes }} "
        "{{ w|words }}\n"
    )
    values = {"n": 2048, "c": {"cat": 1, "dog": 2}, "w": "left_out"}
    assert render("a.md.jinja", text, values) == "2,048 2,048 boxes box 2.0 KiB dog, cat left out\n"


def test_only_html_is_escaped(render):
    assert render("a.html.jinja", "{{ text|loud }}", {"text": "<b>"}, loud=str.upper) == "&lt;B&gt;"


def test_a_block_leaves_no_line_in_a_text(render):
    assert (
        render(
            "a.md.jinja", "{% if yes %}\n{{ text }}\n{% endif %}\n", {"yes": True, "text": "<b>"}
        )
        == "<b>\n"
    )


def test_a_value_that_is_missing_is_an_error(render):
    with pytest.raises(UndefinedError, match="'nothing' is undefined"):
        render("a.md.jinja", "{{ nothing }}", {})


def test_a_template_leaves_no_file_in_the_package(render):
    def files():
        return sorted(path for path in PACKAGE.rglob("*") if "jinja2" in path.name)

    before = files()
    assert render("b.md.jinja", "{{ 1000|number }}\n", {}) == "1,000\n"
    assert files() == before
