"""Prose about a collection does not stop a run; lists, captions and labels do."""

from pathlib import Path

import pytest
import yaml

from recordmill.transforms.inputs.file_roles import PROSE, FileRole, role_of_head

TEXTS = yaml.safe_load(Path(__file__).with_name("prose.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", TEXTS["prose"])
def test_sentences_describe_a_collection(name):
    text = TEXTS["prose"][name]
    assert role_of_head(text.encode(), "notes.txt") == FileRole("description", PROSE)


def test_sentences_may_be_in_utf_16_or_longer_than_what_is_read():
    text = TEXTS["prose"]["wrapped"]
    assert role_of_head(text.encode("utf-16"), "notes.txt").title == PROSE
    assert role_of_head((20 * text).encode()[:1024], "notes.txt").title == PROSE


@pytest.mark.parametrize("name", TEXTS["lists"])
def test_lists_are_not_taken_for_sentences(name):
    assert role_of_head(TEXTS["lists"][name].encode(), "notes.txt").title != PROSE
