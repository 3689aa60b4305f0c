"""Messages name pages of the documentation by paths that exist."""

import re
from pathlib import Path

import pytest

from recordmill.schemas.pages import find_page
from scripts.count_code import modules

ROOT = Path(__file__).parents[2]


def test_a_page_below_the_current_folder_is_named_from_there(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert find_page("settings.md") == "docs/settings.md"


def test_a_page_elsewhere_has_its_whole_path(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert find_page("settings.md") == str(ROOT / "docs/settings.md")


def test_without_a_current_folder_a_page_has_its_whole_path(monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert find_page("settings.md") == str(ROOT / "docs/settings.md")


NAMED = {
    name
    for path in modules()
    for name in re.findall(r'find_page[(,]\s*["\'](\S+?)["\']', path.read_text(encoding="utf-8"))
}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_each_page_that_a_message_names_is_there(name):
    assert (ROOT / "docs" / name).is_file()


def test_messages_name_pages():
    assert {"fix_rejected.md", "settings.md", "layouts.md"} <= NAMED
