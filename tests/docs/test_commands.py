"""Every command of the documentation is run by the test of its page, or the page says that it is
not, and why."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(
    r"^(\$ )?(recordmill |python|pip|docker|kubectl|gcloud|airflow|make|scripts/)", re.MULTILINE
)
TESTS = {"flink": "clusters", "spark": "clusters"}
"""Pages whose test does not have their name."""
SAID = re.compile(r"\bnot run\b|\brun by the tests\b|what was measured", re.IGNORECASE)


def blocks(page):
    """Language and text of each block, with the section up to it and the first line behind it."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        before = text[: found.start()].rpartition("\n#")[2]
        yield found[1], found[2], before + text[found.end() :].strip().partition("\n")[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_not_run_says_so(page):
    for language, block, around in blocks(page):
        if language not in ("sh", "bash") and PROGRAM.search(block):
            assert language == "console", block
            assert SAID.search(around), block


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_with_commands_has_a_test_that_runs_them(page):
    if any(language in ("sh", "bash") for language, *_ in blocks(page)):
        name = TESTS.get(page.stem, page.stem)
        test = (ROOT / "tests/docs" / f"test_{name}.py").read_text(encoding="utf-8")
        assert re.search(r"\brun_page\(|\bcommands_of\(|\bBLOCKS\b|```bash", test)


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_scripts_import_public_names_only(page):
    scripts = [block for language, block, _ in blocks(page) if language == "python"]
    assert not re.findall(r"^\s*(?:import|from) recordmill\..*", "\n".join(scripts), re.MULTILINE)
