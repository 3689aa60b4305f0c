import sys

import pytest
from jinja2 import UndefinedError

from recordmill.schemas.dataset import templates
from recordmill.schemas.dataset.templates import load_template


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
    text = "{{ n|number }} {{ n|count('box') }} {{ 1|plural('box') }} {{ n|bytes }} {{ c|classes }} {{ w|words }}\n"
    values = {"n": 2048, "c": {"cat": 1, "dog": 2}, "w": "left_out"}
    assert render("a.md.jinja", text, values) == "2,048 2,048 boxes box 2.0 KiB dog, cat left out\n"


def test_only_html_is_escaped(render):
    assert render("a.html.jinja", "{{ text|loud }}", {"text": "<b>"}, loud=str.upper) == "&lt;B&gt;"


def test_a_block_leaves_no_line_in_a_text(render):
    assert render("a.md.jinja", "{% if yes %}\n{{ text }}\n{% endif %}\n", {"yes": True, "text": "<b>"}) == "<b>\n"


def test_a_value_that_is_missing_is_an_error(render):
    with pytest.raises(UndefinedError, match="'nothing' is undefined"):
        render("a.md.jinja", "{{ nothing }}", {})


@pytest.mark.parametrize("keeps", [True, False])
def test_templates_are_compiled_once_where_python_keeps_compiled_modules(render, tmp_path, monkeypatch, keeps):
    monkeypatch.setattr(sys, "dont_write_bytecode", not keeps)
    monkeypatch.setattr(templates, "cache_from_source", lambda _: str(tmp_path / "templates.pyc"))
    text = f"{tmp_path.name} {{{{ n|number }}}}\n"
    assert render("b.md.jinja", text, {"n": 1000}) == f"{tmp_path.name} 1,000\n"
    assert len(list(tmp_path.glob("__jinja2_*.cache"))) == keeps
